#include "slurm/slurmd_process.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
#include "slurm/proc.h"

namespace slurmlet::slurm {
namespace {

// Argument of the single-letter option `wanted`, as getopt(3) reads slurmd's options.
std::string short_option(const std::vector<std::string>& arguments, char wanted) {
  constexpr std::string_view kWithValue = "dfLnN";
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-' || argument[1] == '-') {
      continue;
    }
    for (std::size_t at = 1; at < argument.size(); ++at) {
      if (kWithValue.find(argument[at]) == std::string_view::npos) {
        continue;
      }
      const bool in_next = at + 1 == argument.size();
      if (argument[at] == wanted) {
        return in_next ? (i + 1 < arguments.size() ? arguments[i + 1] : "")
                       : argument.substr(at + 1);
      }
      i += in_next ? 1 : 0;
      break;
    }
  }
  return "";
}

bool is_living_slurmd(const std::string& proc, int pid) {
  if (process_name(proc, pid) != "slurmd") {
    return false;
  }
  const auto stat = process_stat(proc, pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

bool name_fits(const SlurmdIdentity& identity, const std::vector<std::string>& arguments) {
  const std::string name = slurmd_node_option(arguments);
  return name.empty() || identity.node_name.empty() || name == identity.node_name;
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

std::string slurmd_node_option(const std::vector<std::string>& arguments) {
  return short_option(arguments, 'N');
}

std::string slurmd_conf_option(const std::vector<std::string>& arguments) {
  return short_option(arguments, 'f');
}

bool is_our_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity, int pid) {
  if (!is_living_slurmd(places.proc_root, pid)) {
    return false;
  }
  const auto arguments = process_arguments(places.proc_root, pid);
  if (!name_fits(identity, arguments)) {
    return false;
  }
  std::string conf = slurmd_conf_option(arguments);
  if (conf.empty()) {
    conf = process_environment(places.proc_root, pid, "SLURM_CONF").value_or("");
  }
  return conf.empty() || identity.conf.empty() || same_file(conf, identity.conf);
}

FoundSlurmd find_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity) {
  FoundSlurmd found;
  if (!places.pid_file.empty()) {
    const auto pid = parse_int<int>(read_trimmed(places.pid_file));
    if (pid && *pid > 0) {
      // The file is named by our slurm.conf, so the process need not prove that it reads the same.
      if (is_living_slurmd(places.proc_root, *pid) &&
          name_fits(identity, process_arguments(places.proc_root, *pid))) {
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
