#include "podapi/resource_metrics.h"

#include <chrono>
#include <utility>

namespace slurmlet::podapi {

std::vector<MetricFamily> resource_metrics(const std::optional<node::Usage>& usage) {
  std::vector<MetricFamily> families;
  const auto add = [&](std::string name, std::string help, MetricType type, double value) {
    if (value > 0) {
      const auto since_epoch = usage->time.time_since_epoch();
      const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
      families.push_back({std::move(name), std::move(help), type, {{{}, value, ms}}});
    }
  };
  if (usage) {
    add("node_cpu_usage_seconds_total", "Cumulative CPU time used by the node in core-seconds.",
        MetricType::kCounter, usage->cpu_seconds);
    add("node_memory_working_set_bytes", "Current working set of the node in bytes.",
        MetricType::kGauge, static_cast<double>(usage->memory_working_set));
  }
  families.push_back(gauge("resource_scrape_error",
                           "1 if the usage of the node could not be read, 0 otherwise.",
                           usage ? 0 : 1));
  return families;
}

}  // namespace slurmlet::podapi
