#include "slurm/slurmd_process.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "slurm/proc.h"

namespace slurmlet::slurm {
namespace {

// A word of the command line at a time, as getopt_long(3) takes them: the argument of an option
// stands behind it or in the next word, long names may be cut short where they stay unique.
class OptionReader {
 public:
  explicit OptionReader(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  SlurmdOptions read() {
    for (at_ = 1; at_ < arguments_.size(); ++at_) {
      const std::string_view word = arguments_[at_];
      if (word == "--") {
        break;
      }
      if (word.starts_with("--")) {
        take_long(word.substr(2));
      } else if (word.starts_with('-')) {
        take_letters(word.substr(1));
      }
    }
    return options_;
  }

 private:
  std::string next_word() { return at_ + 1 < arguments_.size() ? arguments_[++at_] : ""; }

  void take_letters(std::string_view letters) {
    constexpr std::string_view kWithValue = "dfLnN";
    constexpr char kMayHaveValue = 'F';  // only in the same word
    for (std::size_t i = 0; i < letters.size() && letters[i] != kMayHaveValue; ++i) {
      options_.dynamic = options_.dynamic || letters[i] == 'Z';
      if (kWithValue.find(letters[i]) == std::string_view::npos) {
        continue;
      }
      const auto rest = letters.substr(i + 1);
      std::string value = rest.empty() ? next_word() : std::string{rest};
      if (letters[i] == 'N') {
        options_.node_name = std::move(value);
      } else if (letters[i] == 'f') {
        options_.conf_file = std::move(value);
      }
      return;
    }
  }

  void take_long(std::string_view text) {
    constexpr std::array<std::string_view, 7> kWithValue{
        "authinfo", "ca-cert-file", "conf", "conf-server", "extra", "instance-id", "instance-type"};
    const auto equals = text.find('=');
    const auto name = text.substr(0, equals);
    std::vector<std::string_view> meant;
    for (const auto candidate : kWithValue) {
      if (candidate == name) {
        meant = {candidate};
        break;
      }
      if (!name.empty() && candidate.starts_with(name)) {
        meant.push_back(candidate);
      }
    }
    if (meant.size() != 1) {
      return;
    }
    std::string value =
        equals == std::string_view::npos ? next_word() : std::string{text.substr(equals + 1)};
    if (meant.front() == "conf") {
      options_.node_conf = std::move(value);
    } else if (meant.front() == "conf-server") {
      options_.conf_server = std::move(value);
    }
  }

  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  SlurmdOptions options_;
};

bool is_living_slurmd(const std::string& proc, int pid) {
  if (process_name(proc, pid) != "slurmd") {
    return false;
  }
  const auto stat = process_stat(proc, pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

bool name_fits(const SlurmdIdentity& identity, const SlurmdOptions& options) {
  const std::string& name = options.node_name;
  return name.empty() || identity.node_name.empty() || name == identity.node_name;
}

std::string conf_of(const std::string& proc, int pid, const SlurmdOptions& options) {
  return options.conf_file.empty() ? process_environment(proc, pid, "SLURM_CONF").value_or("")
                                   : options.conf_file;
}

// The cache of a configless slurmd is reached by a link as well.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return a == b || std::filesystem::equivalent(a, b, ignored);
}

// The oldest of ours: a child between fork and exec looks like its parent.
int oldest_of(const SlurmdPlaces& places, const SlurmdIdentity& identity,
              const std::vector<int>& pids) {
  int best = 0;
  auto best_start = std::numeric_limits<std::uint64_t>::max();
  for (const int pid : pids) {
    if (!is_our_slurmd(places, identity, pid)) {
      continue;
    }
    const auto stat = process_stat(places.proc_root, pid);
    if (stat && stat->start_time < best_start) {
      best = pid;
      best_start = stat->start_time;
    }
  }
  return best;
}

// The unit's processes, in the unified hierarchy or systemd's own of cgroup v1.
std::vector<int> unit_pids(const SlurmdPlaces& places) {
  std::vector<int> pids;
  for (const char* hierarchy : {"", "/unified", "/systemd"}) {
    const auto content = read_file(places.cgroup_root + hierarchy + "/system.slice/" + places.unit +
                                   "/cgroup.procs");
    if (!content) {
      continue;
    }
    for (const auto line : split(*content, '\n')) {
      if (const auto pid = parse_int<int>(trim(line)); pid && *pid > 0) {
        pids.push_back(*pid);
      }
    }
  }
  return pids;
}

}  // namespace

SlurmdOptions parse_slurmd_options(const std::vector<std::string>& arguments) {
  return OptionReader{arguments}.read();
}

Result<std::vector<SlurmdSeen>> running_slurmds(const std::string& proc_root) {
  auto all = process_ids(proc_root);
  if (!all) {
    return all.error();
  }
  std::vector<int> pids;
  std::copy_if(all->begin(), all->end(), std::back_inserter(pids),
               [&](int pid) { return is_living_slurmd(proc_root, pid); });
  std::sort(pids.begin(), pids.end());
  std::vector<SlurmdSeen> seen;
  for (const int pid : pids) {
    const auto stat = process_stat(proc_root, pid);
    const auto arguments = process_arguments(proc_root, pid);
    // A child between fork and exec looks like its parent.
    if (!stat || arguments.empty() || std::binary_search(pids.begin(), pids.end(), stat->parent)) {
      continue;
    }
    const auto options = parse_slurmd_options(arguments);
    std::string server = options.conf_server;
    if (server.empty()) {
      server = process_environment(proc_root, pid, "SLURM_CONF_SERVER").value_or("");
    }
    const bool known = !options.conf_file.empty() || process_environment_readable(proc_root, pid);
    seen.push_back({pid, options, conf_of(proc_root, pid, options), std::move(server), known});
  }
  return seen;
}

bool is_our_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity, int pid) {
  if (!is_living_slurmd(places.proc_root, pid)) {
    return false;
  }
  const auto options = parse_slurmd_options(process_arguments(places.proc_root, pid));
  if (!name_fits(identity, options)) {
    return false;
  }
  const std::string conf = conf_of(places.proc_root, pid, options);
  return conf.empty() || identity.conf.empty() || same_file(conf, identity.conf);
}

FoundSlurmd find_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity) {
  FoundSlurmd found;
  if (!places.pid_file.empty()) {
    const auto pid = parse_int<int>(read_trimmed(places.pid_file));
    if (pid && *pid > 0) {
      // The file is named by our slurm.conf, so the process need not prove that it reads the same.
      if (is_living_slurmd(places.proc_root, *pid) &&
          name_fits(identity, parse_slurmd_options(process_arguments(places.proc_root, *pid)))) {
        found.pid = *pid;
        return found;
      }
      found.hidden_pid = process_name(places.proc_root, *pid).empty() ? *pid : 0;
    }
  }
  found.pid = oldest_of(places, identity, unit_pids(places));
  if (found.pid != 0) {
    return found;
  }
  const auto all = process_ids(places.proc_root);
  if (!all) {
    found.error = all.error().message;
    return found;
  }
  found.pid = oldest_of(places, identity, *all);
  return found;
}

}  // namespace slurmlet::slurm
