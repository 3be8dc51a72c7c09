#pragma once

// /stats/summary: Summary of stats.k8s.io v1alpha1
// (https://pkg.go.dev/k8s.io/kubelet/pkg/apis/stats/v1alpha1) with the node and no pods. Pure.

#include <string>

#include "node/usage.h"

namespace slurmlet::podapi {

// JSON. `cpu_and_memory_only` is the query parameter only_cpu_and_memory=true.
std::string stats_summary(const std::string& node_name, const node::Usage& usage,
                          bool cpu_and_memory_only);

}  // namespace slurmlet::podapi
