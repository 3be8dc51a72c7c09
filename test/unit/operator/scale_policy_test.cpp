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
  EXPECT_FALSE(policy.mark_idle);
  const ScalePolicy none = read_scale_policy({});
  EXPECT_TRUE(none.partitions.empty());
  EXPECT_EQ(none.problem, "");
  EXPECT_EQ(none.idle_after, minutes{10});
  EXPECT_TRUE(read_scale_policy({{"slurmlet.io/mark-idle", "true"}}).mark_idle);
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

TEST(ScalePolicy, Quantities) {
  EXPECT_EQ(quantity_mib("1Gi"), 1024);
  EXPECT_EQ(quantity_mib("1G"), 953);
  EXPECT_EQ(quantity_mib("1048576"), 1);
  EXPECT_EQ(quantity_mib("1.5Gi"), std::nullopt);
  EXPECT_EQ(quantity_mib(""), std::nullopt);
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

}  // namespace scale_policy_test
}  // namespace slurmlet::op
