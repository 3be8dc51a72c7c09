// The two reports on the usage of the node.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_clock.h"
#include "podapi/node_usage.h"

namespace slurmlet::podapi {
namespace {

using nlohmann::json;

node::Usage sample() {
  node::Usage usage;
  usage.time = WallTime{fakes::FakeClock::kStart} + std::chrono::milliseconds{250};
  usage.booted = WallTime{fakes::FakeClock::kStart} - std::chrono::hours{24};
  usage.cpu_seconds = 12345.67;
  usage.cpu_cores = 1.5;
  usage.memory_total = 1000;
  usage.memory_available = 400;
  usage.memory_used = 800;
  usage.memory_working_set = 600;
  usage.memory_rss = 500;
  usage.page_faults = 70000000000;
  usage.major_page_faults = 9;
  usage.fs_capacity = 2000;
  usage.fs_available = 900;
  usage.fs_used = 1000;
  usage.fs_inodes = 100;
  usage.fs_inodes_free = 60;
  usage.pid_max = 4194304;
  usage.processes = 5120;
  return usage;
}

TEST(StatsSummary, HasTheKubeletsShape) {
  EXPECT_EQ(json::parse(stats_summary("n1", sample(), false)), json::parse(R"({
    "node": {
      "nodeName": "n1",
      "startTime": "2026-11-19T14:00:00Z",
      "cpu": {"time": "2026-11-20T14:00:00Z", "usageNanoCores": 1500000000,
              "usageCoreNanoSeconds": 12345670000000},
      "memory": {"time": "2026-11-20T14:00:00Z", "availableBytes": 400, "usageBytes": 800,
                 "workingSetBytes": 600, "rssBytes": 500, "pageFaults": 70000000000,
                 "majorPageFaults": 9},
      "fs": {"time": "2026-11-20T14:00:00Z", "availableBytes": 900, "capacityBytes": 2000,
             "usedBytes": 1000, "inodes": 100, "inodesFree": 60, "inodesUsed": 40},
      "rlimit": {"time": "2026-11-20T14:00:00Z", "maxpid": 4194304, "curproc": 5120}
    },
    "pods": []})"));
}

TEST(StatsSummary, LeavesOutWhatIsNotKnown) {
  node::Usage usage = sample();
  usage.cpu_cores.reset();
  usage.fs_inodes = usage.fs_inodes_free = 0;
  json node = json::parse(stats_summary("n1", usage, false))["node"];
  EXPECT_FALSE(node["cpu"].contains("usageNanoCores"));
  EXPECT_TRUE(node["fs"].contains("capacityBytes"));
  EXPECT_FALSE(node["fs"].contains("inodes"));
  usage.fs_capacity = 0;
  usage.pid_max = 0;
  node = json::parse(stats_summary("n1", usage, false))["node"];
  EXPECT_FALSE(node.contains("fs"));
  EXPECT_FALSE(node.contains("rlimit"));
}

TEST(StatsSummary, OfCpuAndMemoryOnly) {
  const json node = json::parse(stats_summary("n1", sample(), true))["node"];
  EXPECT_TRUE(node.contains("cpu") && node.contains("memory"));
  EXPECT_FALSE(node.contains("fs") || node.contains("rlimit"));
}

TEST(ResourceMetrics, HaveTheKubeletsNamesAndTimes) {
  EXPECT_EQ(
      metrics_text(resource_metrics(sample())),
      "# HELP node_cpu_usage_seconds_total Cumulative CPU time used by the node in core-seconds.\n"
      "# TYPE node_cpu_usage_seconds_total counter\n"
      "node_cpu_usage_seconds_total 12345.67 1795183200250\n"
      "# HELP node_memory_working_set_bytes Current working set of the node in bytes.\n"
      "# TYPE node_memory_working_set_bytes gauge\n"
      "node_memory_working_set_bytes 600 1795183200250\n"
      "# HELP resource_scrape_error 1 if the usage of the node could not be read, 0 otherwise.\n"
      "# TYPE resource_scrape_error gauge\n"
      "resource_scrape_error 0\n");
}

TEST(ResourceMetrics, SayWhenNothingCouldBeRead) {
  const auto families = resource_metrics(std::nullopt);
  ASSERT_EQ(families.size(), 1U);
  EXPECT_EQ(families[0].name, "resource_scrape_error");
  EXPECT_EQ(families[0].samples[0].value, 1);
}

TEST(ResourceMetrics, ZeroIsNoMeasurement) {
  node::Usage usage = sample();
  usage.memory_working_set = 0;
  const auto families = resource_metrics(usage);
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "node_cpu_usage_seconds_total");
}

}  // namespace
}  // namespace slurmlet::podapi
