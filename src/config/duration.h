#pragma once

// Durations as people write them: Go's form ("1m30s", "500ms", "1.5h", as in Kubernetes) or plain
// seconds ("90"). Kept in whole milliseconds. Pure functions.

#include <optional>
#include <string>
#include <string_view>

#include "config/settings.h"

namespace slurmlet::config {

// Nothing when `text` is no duration, is finer than a millisecond or longer than 100 years.
// Negative ones are read, so that a limit can be named in the error.
std::optional<Milliseconds> parse_duration(std::string_view text);
// "1m30s", "500ms", "0s"; reads back the same.
std::string format_duration(Milliseconds duration);

}  // namespace slurmlet::config
