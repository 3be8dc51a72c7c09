#include "host/cpu_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "fakes/temp_tree.h"

namespace slurmlet::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of the calling thread, by the kernel's own word.
std::set<int> affinity() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  std::set<int> out;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) {
      out.insert(cpu);
    }
  }
  return out;
}

TEST(CpuAffinityTest, TellsWhatAProcessMayUse) {
  const auto own = allowed_cpus("/proc", ::getpid());
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(*own, affinity());
}

TEST(CpuAffinityTest, ReadsTheListOfTheKernel) {
  fakes::TempTree tree;
  tree.file("proc/7/status",
            "Name:\tslurmd\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1,64\nMems:\t1\n");
  tree.file("proc/8/status", "Name:\tslurmd\n");
  tree.file("sys/devices/system/cpu/online", "0-3\n");
  const std::string proc = tree.path("proc").string();
  EXPECT_THAT(allowed_cpus(proc, 7).value(), ElementsAre(0, 1, 64));
  ASSERT_FALSE(allowed_cpus(proc, 8));
  EXPECT_THAT(allowed_cpus(proc, 8).error().message, HasSubstr("proc/8/status"));
  ASSERT_FALSE(allowed_cpus(proc, 9));
  EXPECT_EQ(allowed_cpus(proc, 9).error().code, Code::kNotFound);
  EXPECT_THAT(online_cpus(tree.path("sys").string()).value(), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(online_cpus(tree.path("proc").string()));
}

TEST(CpuAffinityTest, BindsThreadsThatRunAndThreadsAndChildrenThatCome) {
  const std::set<int> before = affinity();
  const std::set<int> one{*before.rbegin()};
  std::promise<void> bound;
  std::promise<std::set<int>> seen;
  std::thread running{[&] {
    bound.get_future().wait();
    seen.set_value(affinity());
  }};
  const Status done = bind_all_threads(one);
  bound.set_value();
  EXPECT_EQ(seen.get_future().get(), one);
  running.join();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(affinity(), one);
  std::set<int> later;
  std::thread{[&] { later = affinity(); }}.join();
  EXPECT_EQ(later, one);
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(affinity() == one ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(bind_all_threads(before));
  EXPECT_EQ(affinity(), before);
}

TEST(CpuAffinityTest, CpusThatThisMachineLacksAreRefused) {
  const std::set<int> before = affinity();
  const Status none = bind_all_threads({16383});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalid);
  EXPECT_THAT(none.error().message, HasSubstr("16383"));
  EXPECT_FALSE(bind_all_threads({}));
  EXPECT_EQ(affinity(), before);
}

}  // namespace
}  // namespace slurmlet::host
