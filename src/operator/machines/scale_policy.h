#pragma once

// What the annotations of a MachineDeployment say about its scale: those of cluster-autoscaler's
// Cluster API provider, and ours. Pure.

#include <map>
#include <string>

#include "operator/rules/scale_rules.h"

namespace slurmlet::op {

struct ScalePolicy {
  std::set<std::string> partitions;  // whose queue counts
  ScaledBy by = ScaledBy::kNone;
  std::int64_t min = 0, max = 0;
  MachineSize size;  // 0: not said
  std::optional<std::set<std::string>> features;
  Duration idle_after = std::chrono::minutes{10}, boot_timeout = std::chrono::minutes{30};
  std::string problem;  // why it is not followed; "" = it is
};

ScalePolicy read_scale_policy(const std::map<std::string, std::string>& annotations);

// MiB of a Kubernetes quantity of bytes ("512Gi", "64G", "1024").
std::optional<std::int64_t> quantity_mib(std::string_view text);

}  // namespace slurmlet::op
