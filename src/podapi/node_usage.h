#pragma once

// The kubelet's two reports on the usage of its node. Pure.

#include <optional>
#include <string>
#include <vector>

#include "node/usage.h"
#include "podapi/metrics_text.h"

namespace slurmlet::podapi {

// /stats/summary: Summary of stats.k8s.io v1alpha1
// (https://pkg.go.dev/k8s.io/kubelet/pkg/apis/stats/v1alpha1) with the node and no pods, as JSON.
// `cpu_and_memory_only` is the query parameter only_cpu_and_memory=true.
std::string stats_summary(const std::string& node_name, const node::Usage& usage,
                          bool cpu_and_memory_only);

// /metrics/resource for metrics-server and the HPA, with the kubelet's names
// (https://kubernetes.io/docs/reference/instrumentation/metrics/): node_cpu_usage_seconds_total and
// node_memory_working_set_bytes with the time they were read, and resource_scrape_error: 1 without
// `usage`. The kubelet's old name for that, scrape_error, is deprecated since 1.29 and omitted.
// metrics-server ignores a node with a value of 0, so 0 is omitted too.
std::vector<MetricFamily> resource_metrics(const std::optional<node::Usage>& usage);

}  // namespace slurmlet::podapi
