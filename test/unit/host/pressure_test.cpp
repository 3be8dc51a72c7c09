#include "host/pressure.h"

#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

namespace slurmlet::host {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

TEST(PressureRules, BeginBelowOneLimitAndEndAtAnother) {
  EXPECT_FALSE(is_memory_low(false, 100 * kMiB));
  EXPECT_TRUE(is_memory_low(false, 100 * kMiB - 1));
  EXPECT_TRUE(is_memory_low(true, 200 * kMiB - 1));
  EXPECT_FALSE(is_memory_low(true, 200 * kMiB));

  EXPECT_FALSE(is_disk_low(false, {1000, 100, 0, 0}));
  EXPECT_TRUE(is_disk_low(false, {1000, 99, 0, 0}));
  EXPECT_TRUE(is_disk_low(true, {1000, 119, 0, 0}));
  EXPECT_FALSE(is_disk_low(true, {1000, 120, 0, 0}));
  EXPECT_FALSE(is_disk_low(false, {0, 0, 0, 0}));

  EXPECT_FALSE(are_inodes_low(false, {1000, 1000, 1000, 50}));
  EXPECT_TRUE(are_inodes_low(false, {1000, 1000, 1000, 49}));
  EXPECT_TRUE(are_inodes_low(true, {1000, 1000, 1000, 59}));
  EXPECT_FALSE(are_inodes_low(true, {1000, 1000, 1000, 60}));
  EXPECT_FALSE(are_inodes_low(false, {1000, 1000, 0, 0})) << "btrfs does not limit inodes";

  EXPECT_FALSE(are_pids_low(false, 900, 1000));
  EXPECT_TRUE(are_pids_low(false, 901, 1000));
  EXPECT_TRUE(are_pids_low(true, 851, 1000));
  EXPECT_FALSE(are_pids_low(true, 850, 1000));
  EXPECT_TRUE(are_pids_low(false, 2000, 1000)) << "a limit lowered below what runs";
}

class Sampling : public ::testing::Test {
 protected:
  void SetUp() override {
    meminfo(24'000'000);
    tree_.file("proc/loadavg", "3.31 2.72 1.98 4/133 10600\n")
        .file("proc/sys/kernel/pid_max", "32768\n")
        .file("proc/sys/kernel/threads-max", "192000\n")
        .dir("state");
    paths_.proc = tree_.path("proc");
    paths_.state_dir = tree_.path("state");
  }
  void meminfo(int available_kib) {
    tree_.file("proc/meminfo",
               "MemTotal:       24684096 kB\nMemFree:        20857164 kB\n"
               "MemAvailable:   " +
                   std::to_string(available_kib) + " kB\n");
  }
  fakes::TempTree tree_;
  Paths paths_;
};

TEST_F(Sampling, ReadsMemoryAndPidsThoughOneLimitIsMissing) {
  tree_.remove("proc/sys/kernel/threads-max");
  const auto pressures = PressureSampler{paths_}.sample();
  ASSERT_TRUE(pressures.memory && pressures.pid);
  EXPECT_FALSE(pressures.memory->under_pressure);
  EXPECT_FALSE(pressures.pid->under_pressure);
}

TEST_F(Sampling, FollowsChangesOnOpenDescriptorsAndDoesNotFlap) {
  PressureSampler sampler{paths_};
  ASSERT_FALSE(sampler.sample().memory->under_pressure);
  meminfo(90 * 1024);
  const auto low = sampler.sample();
  EXPECT_TRUE(low.memory->under_pressure);
  meminfo(150 * 1024);
  EXPECT_EQ(sampler.sample(), low);
  meminfo(300 * 1024);
  EXPECT_FALSE(sampler.sample().memory->under_pressure);
}

TEST_F(Sampling, PidsAreMeasuredAgainstTheLowerLimit) {
  tree_.file("proc/loadavg", "3.31 2.72 1.98 4/30000 10600\n");
  PressureSampler sampler{paths_};
  EXPECT_TRUE(sampler.sample().pid->under_pressure);
  tree_.file("proc/sys/kernel/pid_max", "4194304\n");
  EXPECT_FALSE(sampler.sample().pid->under_pressure);
  tree_.file("proc/sys/kernel/threads-max", "30001\n");
  EXPECT_TRUE(sampler.sample().pid->under_pressure);
}

TEST_F(Sampling, AnUnreadableFigureIsUnknownUntilItCanBeRead) {
  tree_.file("proc/meminfo", "MemAvailable: many\n").file("proc/loadavg", "0.1 0.2\n");
  EXPECT_FALSE(PressureSampler{paths_}.sample().memory);
  EXPECT_FALSE(PressureSampler{paths_}.sample().pid);
  tree_.remove("proc");
  PressureSampler sampler{paths_};
  EXPECT_FALSE(sampler.sample().memory);
  EXPECT_FALSE(sampler.sample().pid);
  meminfo(1000);
  EXPECT_TRUE(sampler.sample().memory->under_pressure);
}

TEST_F(Sampling, TheDiskIsJudgedByTheGivenUsage) {
  PressureSampler sampler{paths_};
  EXPECT_FALSE(sampler.disk(std::nullopt));
  EXPECT_TRUE(sampler.disk(FileSystemUsage{1000, 99, 0, 0})->under_pressure);
  EXPECT_TRUE(sampler.disk(FileSystemUsage{1000, 119, 0, 0})->under_pressure);
  EXPECT_FALSE(sampler.disk(file_system_usage(paths_.state_dir / "not" / "yet"))->detail.empty())
      << "of where it will be";
}

TEST(PressureSampler, RunsOnThisMachine) {
  const auto pressures = PressureSampler{Paths{}}.sample();
  EXPECT_TRUE(pressures.memory && pressures.pid);
}

}  // namespace
}  // namespace slurmlet::host
