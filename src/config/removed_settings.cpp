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

// In the order of their keys.
constexpr RemovedSetting kRemovedSettings[] = {
    {"cpuAffinity", "--cpu-affinity",
     "set CPUAffinity= in a drop-in of the unit (systemctl edit slurmlet); slurmd's CPUs are "
     "Cpus_allowed_list in /proc/PID/status"},
    {"slurm.feed", "--slurm-feed", kFeedAdvice},
    {"slurm.source: feed", "", kFeedAdvice},
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
