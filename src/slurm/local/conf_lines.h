#pragma once

// The lines of slurm.conf and gres.conf as key=value pairs (slurm.conf(5): "#" begins a comment
// unless escaped by "\", a "\" at the end that is not escaped continues the line, keys are
// case-insensitive, values with spaces stand in double quotes, "Include FILE" reads another file,
// relative to the first one; %c in its name is the ClusterName).

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/trusted_file.h"

namespace slurmlet::slurm {

// One logical line: keys in lower case, in order.
struct ConfLine {
  std::vector<std::pair<std::string, std::string>> pairs;
  // The value of `key` (lower case); nothing when it is absent.
  std::optional<std::string> get(std::string_view key) const;
  bool starts_with(std::string_view key) const {
    return !pairs.empty() && pairs.front().first == key;
  }
};

// The pairs of one line of text; text that is no pair is passed over.
ConfLine parse_conf_line(std::string_view text);

// Calls `take` for each line with pairs, in order, files included. Returns the Includes that could
// not be read, with why; kInvalid where others than `users` may change one of the files, and for
// files that include each other.
Result<std::vector<std::string>> for_each_conf_line(
    const std::string& path, const TrustedUsers& users,
    const std::function<void(const ConfLine&)>& take);

}  // namespace slurmlet::slurm
