#include "operator/machines/scale_policy.h"

#include <gtest/gtest.h>

#include "operator/machines/scale_facts.h"

namespace slurmlet::op {
namespace scale_policy_test {

using std::chrono::minutes;

std::map<std::string, std::string> annotations() {
  return {{"slurmlet.io/scale-for", "partition=gpu, partition=debug"},
          {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size", "1"},
          {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size", "64"},
          {"capacity.cluster-autoscaler.kubernetes.io/cpu", "128"},
          {"capacity.cluster-autoscaler.kubernetes.io/memory", "512Gi"},
          {"capacity.cluster-autoscaler.kubernetes.io/gpu-count", "8"},
          {"slurmlet.io/scale-features", "gpu,big"},
          {"slurmlet.io/idle-after", "5m"},
          {"slurmlet.io/boot-timeout", "1h"}};
}

TEST(ScalePolicy, ReadsAnnotations) {
  const ScalePolicy policy = read_scale_policy(annotations());
  EXPECT_EQ(policy.problem, "");
  EXPECT_EQ(policy.partitions, (std::set<std::string>{"gpu", "debug"}));
  EXPECT_EQ(policy.min, 1);
  EXPECT_EQ(policy.max, 64);
  EXPECT_EQ(policy.size, (MachineSize{128, 512 * 1024, 8}));
  EXPECT_EQ(policy.features, (std::set<std::string>{"gpu", "big"}));
  EXPECT_EQ(policy.idle_after, minutes{5});
  EXPECT_EQ(policy.boot_timeout, minutes{60});
  EXPECT_EQ(policy.by, ScaledBy::kQueue);
  const ScalePolicy none = read_scale_policy({});
  EXPECT_TRUE(none.partitions.empty());
  EXPECT_EQ(none.problem, "");
  EXPECT_EQ(none.idle_after, minutes{10});
  EXPECT_EQ(none.by, ScaledBy::kNone);
  EXPECT_EQ(read_scale_policy({{"slurmlet.io/mark-idle", "true"}}).by, ScaledBy::kOther);
  EXPECT_EQ(read_scale_policy({{"slurmlet.io/mark-idle", "false"}}).by, ScaledBy::kNone);
  auto both = annotations();
  both["slurmlet.io/mark-idle"] = "true";
  EXPECT_EQ(read_scale_policy(both).by, ScaledBy::kOther);
  EXPECT_EQ(read_scale_policy(both).partitions, policy.partitions);
}

TEST(ScalePolicy, WhatIsWrongIsNotFollowed) {
  const std::map<std::string, std::string> wrong{
      {"slurmlet.io/scale-for", "gpu"},
      {"slurmlet.io/idle-after", "soon"},
      {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size", "65"},
      {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size", "-1"},
      {"capacity.cluster-autoscaler.kubernetes.io/memory", "much"}};
  for (const auto& [key, value] : wrong) {
    auto all = annotations();
    all[key] = value;
    EXPECT_NE(read_scale_policy(all).problem, "") << key;
  }
  auto all = annotations();
  all.erase("cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size");
  EXPECT_NE(read_scale_policy(all).problem, "");
}

TEST(ScalePolicy, HugeNumbersAreRejected) {
  for (const char* key : {"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size",
                          "capacity.cluster-autoscaler.kubernetes.io/cpu"}) {
    auto all = annotations();
    all[key] = "9223372036854775807";
    EXPECT_NE(read_scale_policy(all).problem, "") << key;
  }
}

TEST(ScalePolicy, Quantities) {
  EXPECT_EQ(quantity_mib("1Gi"), 1024);
  EXPECT_EQ(quantity_mib("1G"), 953);
  EXPECT_EQ(quantity_mib("1048576"), 1);
  EXPECT_EQ(quantity_mib("1.5Gi"), std::nullopt);
  EXPECT_EQ(quantity_mib(""), std::nullopt);
  EXPECT_EQ(quantity_mib("9223372036854775807Ti"), std::nullopt);
}

// Which nodes may be drained, and which were.
TEST(ScaleFacts, Idle) {
  const auto node = [](std::set<std::string> flags, std::string base = "IDLE") {
    SlurmNode out;
    out.state = {std::move(base), std::move(flags)};
    out.reason = "slurmlet: scale-down [u1]";
    return out;
  };
  EXPECT_TRUE(is_idle(node({})));
  EXPECT_TRUE(is_idle(node({"DYNAMIC_NORM"})));
  for (const char* flag : {"DRAIN", "RESERVED", "PLANNED", "MAINTENANCE", "COMPLETING",
                           "NOT_RESPONDING", "POWERED_DOWN", "SOMETHING_NEW"}) {
    EXPECT_FALSE(is_idle(node({flag}))) << flag;
  }
  EXPECT_FALSE(is_idle(node({}, "MIXED")));
  EXPECT_TRUE(is_drained_idle(node({"DRAIN"})));
  EXPECT_FALSE(is_drained_idle(node({})));
  EXPECT_FALSE(is_drained_idle(node({"DRAIN", "COMPLETING"})));
  auto other = node({"DRAIN"});
  other.reason = "broken fan";
  EXPECT_FALSE(is_drained_idle(other));
}

TEST(ScaleFacts, WhatAMachineIsToTheScaler) {
  using State = ScaleMachine::State;
  struct Case {
    const char* what;
    std::string base;
    std::set<std::string> flags;
    std::string reason;
    State young, old;  // within its boot timeout, and after it
  };
  const std::vector<Case> cases{
      {"in service", "IDLE", {}, "", State::kIdle, State::kIdle},
      {"boots", "DOWN", {"NOT_RESPONDING"}, "", State::kBooting, State::kLate},
      {"was never there", "UNKNOWN", {}, "", State::kBooting, State::kLate},
      {"drained by us",
       "IDLE",
       {"DRAIN"},
       "slurmlet: scale-down [u1]",
       State::kLeaving,
       State::kLeaving},
      {"drained by drainOn",
       "IDLE",
       {"DRAIN"},
       "slurmlet: GPUHealthy: 1 of 8 GPUs missing [u1]",
       State::kInUse,
       State::kInUse},
      {"drained by a cordon",
       "IDLE",
       {"DRAIN"},
       "slurmlet: cordoned",
       State::kInUse,
       State::kInUse},
      {"drained by an administrator", "IDLE", {"DRAIN"}, "fan", State::kInUse, State::kInUse},
      {"asleep", "IDLE", {"CLOUD", "POWERED_DOWN"}, "", State::kInUse, State::kInUse},
      {"falls asleep",
       "IDLE",
       {"POWERING_DOWN", "NOT_RESPONDING"},
       "",
       State::kInUse,
       State::kInUse},
      {"wakes", "IDLE", {"POWERING_UP", "NOT_RESPONDING"}, "", State::kInUse, State::kInUse},
      {"did not wake",
       "DOWN",
       {"POWERED_DOWN"},
       "ResumeTimeout reached",
       State::kInUse,
       State::kInUse},
      {"runs jobs", "MIXED", {}, "", State::kInUse, State::kInUse},
      {"reserved", "IDLE", {"RESERVED"}, "", State::kInUse, State::kInUse},
      {"planned", "IDLE", {"PLANNED"}, "", State::kIdle, State::kIdle},
  };
  const WallTime now{std::chrono::hours{1000}};
  for (const auto& one : cases) {
    SlurmNode slurm;
    slurm.name = "n1";
    slurm.state = {one.base, one.flags};
    slurm.reason = one.reason;
    MachinePlace place;
    place.slurm = {&slurm};
    for (const bool young : {true, false}) {
      kube::Machine machine;
      machine.hooked = true;
      machine.created_at = now - (young ? minutes{29} : minutes{31});
      EXPECT_EQ(scale_machine(machine, place, {}, {}, now).state, young ? one.young : one.old)
          << one.what << (young ? ", young" : ", old");
    }
  }
}

TEST(ScaleFacts, AMachineWithoutASlurmNode) {
  using State = ScaleMachine::State;
  const WallTime now{std::chrono::hours{1000}};
  kube::Machine machine;
  machine.created_at = now - minutes{31};
  MachinePlace place;
  EXPECT_EQ(scale_machine(machine, place, {}, {}, now).state, State::kLate);
  place.is_elsewhere = true;
  EXPECT_EQ(scale_machine(machine, place, {}, {}, now).state, State::kInUse);
}

// Its pending job counts as demand, so it is free for it; but it does not go.
TEST(ScaleFacts, APlannedNodeIsNotIdleForLong) {
  const WallTime now{std::chrono::hours{1000}};
  SlurmNode slurm;
  slurm.text =
      "NodeName=n1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad=0.05 "
      "NodeAddr=127.0.0.1 NodeHostName=n1 Port=6818 Version=22.05.8 RealMemory=8000 State=IDLE "
      "Partitions=normal  LastBusyTime=100 CfgTRES=cpu=4\n";
  MachinePlace place;
  place.slurm = {&slurm};
  const auto idle_for = [&](std::set<std::string> flags) {
    slurm.state = {"IDLE", std::move(flags)};
    return scale_machine({}, place, {}, {}, now).idle_for;
  };
  EXPECT_GT(idle_for({}), minutes{10});
  EXPECT_EQ(idle_for({"PLANNED"}), Duration{});
}

TEST(ScaleFacts, OnlyAHookedMachineOfNoControllerThatNoOtherHasMarkedMayGo) {
  const std::map<std::optional<std::string>, bool> marks{
      {std::nullopt, true}, {"slurmlet", true}, {"yes", false}, {"", false}};
  for (const auto& [mark, is_ours] : marks) {
    for (const bool hooked : {true, false}) {
      for (const bool controller : {true, false}) {
        kube::Machine machine;
        machine.hooked = hooked;
        machine.controller = controller;
        machine.delete_mark = mark;
        EXPECT_EQ(scale_machine(machine, {}, {}, {}, {}).may_go, hooked && !controller && is_ours);
      }
    }
  }
}

}  // namespace scale_policy_test
}  // namespace slurmlet::op
