#include "daemon/cpu_pin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "base/cpu_list.h"
#include "fakes/temp_tree.h"
#include "host/cpu_affinity.h"

namespace slurmlet::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using Liveness = node::SlurmdFacts::Liveness;

TEST(CpusSetApartTest, ASlurmdThatMayUseAllCpusSetsNoneApart) {
  EXPECT_THAT(cpus_set_apart({0, 4}, {0, 1, 2, 3, 4}, false), Optional(ElementsAre(0, 4)));
  for (const bool off_spec : {false, true}) {
    EXPECT_FALSE(cpus_set_apart({0, 1, 2}, {0, 1, 2}, off_spec));
    EXPECT_FALSE(cpus_set_apart({0, 1, 2, 3}, {0, 1}, off_spec))
        << "some that it may use are offline";
  }
}

TEST(CpusSetApartTest, ASlurmdThatKeepsOffThemLeavesThemToUs) {
  EXPECT_THAT(cpus_set_apart({1, 2, 3, 5}, {0, 1, 2, 3, 4, 5}, true), Optional(ElementsAre(0, 4)));
  EXPECT_THAT(cpus_set_apart({0}, {0, 1}, true), Optional(ElementsAre(1)))
      << "also where both are as many";
}

// slurm.conf has been read, and says nothing of SlurmdOffSpec.
const node::SlurmConfFacts kConf = [] {
  node::SlurmConfFacts conf;
  conf.path = "/etc/slurm/slurm.conf";
  return conf;
}();

node::SlurmdFacts running(int pid) {
  node::SlurmdFacts slurmd;
  slurmd.liveness = Liveness::kRunning;
  slurmd.pid = pid;
  return slurmd;
}

// Binds this very process, among the CPUs that it has; gives them back afterwards.
class CpuPinTest : public ::testing::Test {
 protected:
  CpuPinTest() : before_(affinity()) { tree_.file("sys/devices/system/cpu/online", "0-1023\n"); }
  ~CpuPinTest() override { EXPECT_TRUE(host::bind_all_threads(before_)); }

  static std::set<int> affinity() { return host::allowed_cpus("/proc", ::getpid()).value(); }
  void slurmd_may_use(int pid, const std::string& list) {
    tree_.file("proc/" + std::to_string(pid) + "/status", "Cpus_allowed_list:\t" + list + "\n");
  }
  std::string one() const { return std::to_string(*before_.rbegin()); }
  std::set<int> just_one() const { return {*before_.rbegin()}; }
  CpuPin pin(const std::string& wanted) const {
    return CpuPin{wanted, tree_.path("proc").string(), tree_.path("sys").string()};
  }

  fakes::TempTree tree_;
  std::set<int> before_;
};

TEST_F(CpuPinTest, NoneLeavesItToTheMachine) {
  slurmd_may_use(5, one());
  CpuPin none = pin("none");
  EXPECT_TRUE(none.start());
  none.follow(running(5), kConf);
  EXPECT_EQ(affinity(), before_);
}

TEST_F(CpuPinTest, AListIsTakenAtTheStart) {
  CpuPin list = pin(one());
  EXPECT_TRUE(list.start());
  EXPECT_EQ(affinity(), just_one());
}

TEST_F(CpuPinTest, WhatWasBoundIsGivenBack) {
  {
    CpuPin list = pin(one());
    EXPECT_TRUE(list.start());
  }
  EXPECT_EQ(affinity(), before_);
}

TEST_F(CpuPinTest, AListOfCpusThatAreNotThereIsAnErrorWithACure) {
  const Status refused = pin("16000").start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("cpuAffinity"));
  EXPECT_THAT(refused.error().message, HasSubstr("/sys/devices/system/cpu/online"));
  EXPECT_EQ(affinity(), before_);
}

TEST_F(CpuPinTest, SlurmdsCpusAreTakenOverWhenItRunsAndKeptWhileItRestarts) {
  slurmd_may_use(5, one());
  CpuPin slurmd = pin("slurmd");
  EXPECT_TRUE(slurmd.start());
  slurmd.follow({}, kConf);
  EXPECT_EQ(affinity(), before_);
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), just_one());
  node::SlurmdFacts absent;
  absent.liveness = Liveness::kAbsent;
  slurmd.follow(absent, kConf);
  EXPECT_EQ(affinity(), just_one());
}

TEST_F(CpuPinTest, AnotherSlurmdIsLookedAtAgain) {
  if (before_.size() < 2) {
    GTEST_SKIP() << "one CPU only";
  }
  slurmd_may_use(5, one());
  slurmd_may_use(6, std::to_string(*before_.begin()));
  slurmd_may_use(7, "0-1023");
  CpuPin slurmd = pin("slurmd");
  EXPECT_TRUE(slurmd.start());
  slurmd.follow(running(5), kConf);
  slurmd.follow(running(6), kConf);
  EXPECT_EQ(affinity(), std::set<int>{*before_.begin()});
  slurmd.follow(running(7), kConf);
  EXPECT_EQ(affinity(), before_) << "it may use all CPUs, so none are set apart";
}

TEST_F(CpuPinTest, ASlurmdConfinesItselfAMomentAfterItsStart) {
  slurmd_may_use(5, "0-1023");
  CpuPin slurmd = pin("slurmd");
  EXPECT_TRUE(slurmd.start());
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), before_);
  slurmd_may_use(5, one());
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), just_one());
}

TEST_F(CpuPinTest, UntilSlurmConfIsReadNothingChanges) {
  slurmd_may_use(5, one());
  CpuPin slurmd = pin("slurmd");
  EXPECT_TRUE(slurmd.start());
  slurmd.follow(running(5), {});
  EXPECT_EQ(affinity(), before_);
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), just_one());
}

TEST_F(CpuPinTest, ASlurmdThatEndsMeanwhileIsWaitedFor) {
  CpuPin slurmd = pin("slurmd");
  EXPECT_TRUE(slurmd.start());
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), before_);
  slurmd_may_use(5, one());
  slurmd.follow(running(5), kConf);
  EXPECT_EQ(affinity(), just_one());
}

}  // namespace
}  // namespace slurmlet::daemon
