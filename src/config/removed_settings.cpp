#include "config/removed_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace slurmlet::config {
namespace {

struct RemovedSetting {
  std::string_view key;   // or a value of one that stays: "slurm.source: feed"
  std::string_view flag;  // "" = none
  std::string_view advice;
};

constexpr std::string_view kFeedAdvice =
    "run slurmlet-operator, and set slurm.source to operator or auto";
constexpr std::string_view kRestAdvice =
    "leave slurm.source at auto; slurmrestd is now queried by slurmlet-operator (slurmSource: "
    "rest)";
// In the order of their keys.
constexpr RemovedSetting kRemovedSettings[] = {
    {"config-table", "", "man slurmlet.yaml has all settings"},
    {"cpuAffinity", "--cpu-affinity",
     "set CPUAffinity= in a drop-in of the unit (systemctl edit slurmlet); slurmd's CPUs are "
     "Cpus_allowed_list in /proc/PID/status"},
    {"parse-slurm", "",
     "slurmlet print-node prints what slurmlet makes of slurmctld's answer; its text is this "
     "node's line of scontrol -a -d -o show node"},
    {"print-node --diff", "--diff",
     "compare the output of slurmlet print-node with kubectl get node NAME -o json; slurmlet "
     "status says what keeps the Node from being as wanted"},
    {"slurm.feed", "--slurm-feed", kFeedAdvice},
    {"slurm.jwtFile", "--slurm-jwt-file", kRestAdvice},
    {"slurm.questionsPerHour", "--slurm-questions-per-hour",
     "remove it; the load on slurmctld now follows from slurm.pollInterval alone"},
    {"slurm.restCAFile", "--slurm-rest-ca-file", kRestAdvice},
    {"slurm.restURL", "--slurm-rest-url", kRestAdvice},
    {"slurm.restUser", "--slurm-rest-user", kRestAdvice},
    {"slurm.source: cli", "", "set slurm.source to scontrol, or leave it at auto"},
    {"slurm.source: feed", "", kFeedAdvice},
    {"slurm.source: rest", "", kRestAdvice},
};

}  // namespace

std::string removal_of(std::string_view name) {
  const auto* const row = std::find_if(
      std::begin(kRemovedSettings), std::end(kRemovedSettings),
      [name](const RemovedSetting& each) { return name == each.key || name == each.flag; });
  return name.empty() || row == std::end(kRemovedSettings)
             ? ""
             : fmt::format("was removed in 0.2: {}", row->advice);
}

}  // namespace slurmlet::config
