#include "host/usage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "fixtures.h"

namespace slurmlet::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kKiB = 1024;

TEST(BusyTicks, AreAllButIdleAndIoWait) {
  // user nice system idle iowait irq softirq steal guest guest_nice
  EXPECT_EQ(busy_ticks("cpu  1 20 300 4000 50000 600000 7000000 80000000 900 1000\ncpu0 1 1 1 1\n"),
            87600321U);
  EXPECT_EQ(busy_ticks("intr 5\ncpu0 1 2 3 4\ncpu  1 2 3 4\n"), 6U) << "Linux 2.4 had four";
  for (const char* odd :
       {"", "cpu", "cpu  1 2 3\n", "cpu0 1 2 3 4\n", "cpu  1 2 x 4 5 6 7 8\n", "cpu  1 -2 3 4\n"}) {
    EXPECT_FALSE(busy_ticks(odd)) << odd;
  }
}

TEST(UsageOfTwoCpus, IsReadFromCapturedFiles) {
  Paths paths;
  paths.proc = fixtures() / "host/two-cpus/proc";
  fakes::FakeClock clock;
  const auto usage = UsageReader{paths}.read(clock.now());
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->time, clock.now().wall);
  EXPECT_EQ(usage->booted, WallTime{seconds{1795261101}});
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, 2983.62);
  EXPECT_FALSE(usage->cpu_cores) << "nothing to compare with yet";
  EXPECT_EQ(usage->memory_total, 25276510208U);
  EXPECT_EQ(usage->memory_rss, 920608768U);
  EXPECT_EQ(usage->memory_used, 2163646464U);
  EXPECT_EQ(usage->memory_working_set, 1486979072U);
  EXPECT_EQ(usage->memory_available, 23789531136U);
  EXPECT_EQ(usage->page_faults, 88140842U);
  EXPECT_EQ(usage->major_page_faults, 11321U);
  EXPECT_EQ(usage->processes, 206U);
  EXPECT_EQ(usage->pid_max, 32768U);
}

class ReadingUsage : public ::testing::Test {
 protected:
  void SetUp() override {
    big_machine(3'600'000);
    tree_.file("proc/vmstat", "nr_free_pages 1\npgfault 70000000000\npgmajfault 12345\n")
        .file("proc/loadavg", "120.31 118.72 90.98 128/5120 2106000\n")
        .file("proc/sys/kernel/pid_max", "4194304\n")
        .file("proc/sys/kernel/threads-max", "8253728\n");
  }

  // An invented node with 128 CPUs, 512 GiB and 20000 interrupts.
  void big_machine(std::uint64_t user_ticks) {
    std::string stat = fmt::format("cpu  {} 0 0 900000000 70 0 0 0 {} 0\n", user_ticks, user_ticks);
    for (int cpu = 0; cpu < 128; ++cpu) {
      stat += fmt::format("cpu{} {} 0 0 7031250 0 0 0 0 0 0\n", cpu, user_ticks / 128);
    }
    stat += "intr 18446744073709551615";
    for (int interrupt = 0; interrupt < 20000; ++interrupt) {
      stat += " 4294967295";
    }
    tree_.file("proc/stat", stat + "\nctxt 1\nbtime 1795000000\nprocesses 9\n");
    meminfo(400);
  }
  void meminfo(std::uint64_t anon_gib) {
    constexpr std::uint64_t kGiB = kKiB * kKiB;  // in kB
    tree_.file(
        "proc/meminfo",
        fmt::format("MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\nBuffers: 16 kB\n"
                    "Cached: {} kB\nSwapCached: 4 kB\nActive(file): 8 kB\n"
                    "Inactive(file): {} kB\nAnonPages: {} kB\nHugePages_Total: 0\n",
                    512 * kGiB, 40 * kGiB, 90 * kGiB, 64 * kGiB, 60 * kGiB, anon_gib * kGiB));
  }
  std::optional<node::Usage> read() { return reader_.read(clock_.now()); }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  UsageReader reader_{[this] {
                        Paths paths;
                        paths.proc = tree_.path("proc");
                        return paths;
                      }(),
                      tree_.root()};
};

TEST_F(ReadingUsage, OfABigMachine) {
  const auto usage = read();
  ASSERT_TRUE(usage);
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_DOUBLE_EQ(usage->cpu_seconds, 36000) << "guest is within user";
  EXPECT_EQ(usage->booted, WallTime{seconds{1795000000}}) << "it stands after a very long line";
  EXPECT_EQ(usage->memory_total, 512 * kGiB);
  EXPECT_EQ(usage->memory_rss, 400 * kGiB);
  EXPECT_EQ(usage->memory_used, 464 * kGiB + 20 * kKiB);
  EXPECT_EQ(usage->memory_working_set, 404 * kGiB + 20 * kKiB);
  EXPECT_EQ(usage->memory_available, 108 * kGiB - 20 * kKiB);
  EXPECT_EQ(usage->page_faults, 70000000000U);
  EXPECT_EQ(usage->major_page_faults, 12345U);
  EXPECT_EQ(usage->processes, 5120U);
  EXPECT_EQ(usage->pid_max, 4194304U);
  EXPECT_GT(usage->fs_capacity, 0U);
  EXPECT_LE(usage->fs_used + usage->fs_available, usage->fs_capacity);
  EXPECT_LE(usage->fs_inodes_free, usage->fs_inodes);
}

TEST_F(ReadingUsage, CoresInUseSinceTheLastSample) {
  ASSERT_TRUE(read());
  clock_.advance(seconds{10});
  big_machine(3'600'000 + 128 * 100 * 10);
  EXPECT_DOUBLE_EQ(read()->cpu_cores.value(), 128);
  clock_.advance(milliseconds{999});
  big_machine(3'600'000 + 128 * 100 * 10 + 1);
  EXPECT_DOUBLE_EQ(read()->cpu_cores.value(), 128) << "too short a time to say";
  clock_.advance(milliseconds{1});
  big_machine(3'600'000 + 128 * 100 * 10 + 50);
  EXPECT_DOUBLE_EQ(read()->cpu_cores.value(), 0.5) << "since the last sample";
  clock_.advance(seconds{5});
  big_machine(1'000'000);
  EXPECT_DOUBLE_EQ(read()->cpu_cores.value(), 0) << "CPUs were taken offline";
}

TEST_F(ReadingUsage, TheLowerLimitOfProcessesCountsAndWhatIsUnreadableIsZero) {
  tree_.file("proc/sys/kernel/threads-max", "1000\n");
  EXPECT_EQ(read()->pid_max, 1000U);
  tree_.remove("proc/sys/kernel/threads-max");
  EXPECT_EQ(read()->pid_max, 4194304U);
  tree_.remove("proc/sys/kernel").remove("proc/vmstat").remove("proc/loadavg");
  tree_.file("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\nbtime 1795000003\n");
  const auto usage = read();
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->pid_max, 0U);
  EXPECT_EQ(usage->page_faults, 0U);
  EXPECT_EQ(usage->processes, 0U);
  EXPECT_GT(usage->cpu_seconds, 0);
  EXPECT_EQ(usage->booted, WallTime{seconds{1795000000}}) << "the time of boot is stable";
}

TEST_F(ReadingUsage, NothingWithoutCpuTimeOrMemory) {
  tree_.file("proc/meminfo", "MemTotal: 5 kB\nAnonPages: many kB\n");
  EXPECT_FALSE(read());
  meminfo(1);
  EXPECT_TRUE(read());
  tree_.remove("proc/stat");
  EXPECT_FALSE(read());
}

TEST(UsageReader, RunsOnThisMachine) {
  const auto usage = UsageReader{Paths{}}.read(SystemClock{}.now());
  ASSERT_TRUE(usage);
  EXPECT_GT(usage->cpu_seconds, 0);
  EXPECT_GT(usage->memory_working_set, 0U);
  EXPECT_LT(usage->memory_working_set, usage->memory_total);
  EXPECT_GT(usage->booted, WallTime{});
}

}  // namespace
}  // namespace slurmlet::host
