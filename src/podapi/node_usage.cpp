#include "podapi/node_usage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/rfc3339.h"

namespace slurmlet::podapi {

using nlohmann::json;

namespace {

std::uint64_t nano(double value) {
  return static_cast<std::uint64_t>(std::llround(std::max(0.0, value) * 1e9));
}

json cpu_stats(const node::Usage& usage) {
  json cpu{{"time", rfc3339(usage.time)}, {"usageCoreNanoSeconds", nano(usage.cpu_seconds)}};
  if (usage.cpu_cores) {
    cpu["usageNanoCores"] = nano(*usage.cpu_cores);
  }
  return cpu;
}

json memory_stats(const node::Usage& usage) {
  return {{"time", rfc3339(usage.time)},
          {"availableBytes", usage.memory_available},
          {"usageBytes", usage.memory_used},
          {"workingSetBytes", usage.memory_working_set},
          {"rssBytes", usage.memory_rss},
          {"pageFaults", usage.page_faults},
          {"majorPageFaults", usage.major_page_faults}};
}

json fs_stats(const node::Usage& usage) {
  json fs{{"time", rfc3339(usage.time)},
          {"availableBytes", usage.fs_available},
          {"capacityBytes", usage.fs_capacity},
          {"usedBytes", usage.fs_used}};
  if (usage.fs_inodes > 0) {  // btrfs and some network file systems count none
    fs["inodes"] = usage.fs_inodes;
    fs["inodesFree"] = usage.fs_inodes_free;
    fs["inodesUsed"] = usage.fs_inodes - std::min(usage.fs_inodes, usage.fs_inodes_free);
  }
  return fs;
}

}  // namespace

std::string stats_summary(const std::string& node_name, const node::Usage& usage,
                          bool cpu_and_memory_only) {
  json node{{"nodeName", node_name},
            {"startTime", rfc3339(usage.booted)},
            {"cpu", cpu_stats(usage)},
            {"memory", memory_stats(usage)}};
  if (!cpu_and_memory_only) {
    if (usage.fs_capacity > 0) {
      node["fs"] = fs_stats(usage);
    }
    if (usage.pid_max > 0) {
      node["rlimit"] = {
          {"time", rfc3339(usage.time)}, {"maxpid", usage.pid_max}, {"curproc", usage.processes}};
    }
  }
  const json summary{{"node", std::move(node)}, {"pods", json::array()}};
  return summary.dump(-1, ' ', false, json::error_handler_t::replace);
}

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
