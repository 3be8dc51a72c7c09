#include "node/node_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/desired_node.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace node_diff_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char kThen[] = "2026-11-20T10:00:00Z";
constexpr char kNow[] = "2026-11-20T14:00:00Z";

DesiredNode desired(const HostFacts& facts = good_facts()) {
  return desired_node(facts, policy_for("n1"), {}, "0.1.0");
}

NodePatch diff(const ObservedNode& observed, const DesiredNode& wanted) {
  return node_diff(observed, wanted, time_of(kNow));
}

const PatchedCondition* patched(const NodePatch& patch, const std::string& type) {
  for (const auto& condition : patch.conditions) {
    if (condition.condition.type == type) {
      return &condition;
    }
  }
  return nullptr;
}

HostFacts with_gpus(std::vector<Gres> gres) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = std::move(gres);
  return facts;
}

HostFacts with_all_labels() {
  HostFacts facts = with_gpus({{"gpu", "a100", 4}});
  facts.slurm.record->active_features = {"ib"};
  return facts;
}

TEST(NodeDiffTest, NoChangeIsAHeartbeatOnly) {
  const NodePatch patch = diff(observed_from(desired(), kThen), desired());
  EXPECT_FALSE(patch.has_changes);
  EXPECT_EQ(patch.uid, "uid-1");
  EXPECT_TRUE(patch.labels.empty() && patch.annotations.empty());
  EXPECT_TRUE(patch.capacity.empty() && patch.allocatable.empty());
  EXPECT_THAT(patch.removed_conditions, IsEmpty());
  EXPECT_FALSE(patch.addresses || patch.node_info || patch.kubelet_port);
  EXPECT_EQ(patch.conditions.size(), desired().conditions.size());
  for (const auto& condition : patch.conditions) {
    EXPECT_EQ(condition.last_heartbeat_time, kNow);
    EXPECT_EQ(condition.last_transition_time, kThen);
  }
}

TEST(NodeDiffTest, WhatAPatchIsForIsNoHeartbeatAndNotWhatIsKnown) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.labels.erase("type");
  const NodePatch known = diff(observed, desired());
  ASSERT_EQ(example_of(known), "the label type");
  EXPECT_EQ(example_of(known, known), "");
  observed.conditions.front().condition.status = "Unknown";
  const std::string type = observed.conditions.front().condition.type;
  EXPECT_EQ(example_of(diff(observed, desired()), known), "the condition " + type);
  const NodePatch changes = changes_of(diff(observed, desired()));
  ASSERT_EQ(changes.conditions.size(), 1U);
  EXPECT_EQ(changes.conditions.front().condition.type, type);
  EXPECT_EQ(changes.conditions.front().last_heartbeat_time, "");
  observed = observed_from(desired(), kThen);
  const std::string hostile = "SlurmNodeStateX\n" + std::string(300, 'x');
  observed.conditions.push_back({{hostile, "True", "X", ""}, kThen});
  const std::string shown = example_of(diff(observed, desired()));
  EXPECT_THAT(shown, StartsWith("the condition SlurmNodeStateX xxx"));
  EXPECT_LT(shown.size(), 120U);
}

// By the annotation no name of somebody else's comes into the Node: the API server takes any.
TEST(NodeDiffTest, OnlyAGpuThatTheNodeHasIsZeroed) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.annotations["slurmlet.io/gpu-resources"] = "not a\nname,nvidia.com/gpu";
  observed.capacity["nvidia.com/gpu"] = "4";
  const NodePatch patch = diff(observed, desired());
  EXPECT_THAT(patch.capacity, ElementsAre(Pair("nvidia.com/gpu", "0")));
  EXPECT_EQ(patch.annotations.at("slurmlet.io/gpu-resources"), "nvidia.com/gpu");
}

// The API server keeps both; readers take one or the other.
TEST(NodeDiffTest, ADoubledConditionIsWrittenAnew) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.conditions.push_back({{"Ready", "False", "Forged", ""}, kThen});
  const NodePatch patch = diff(observed, desired());
  EXPECT_TRUE(patch.has_changes);
  EXPECT_THAT(patch.removed_conditions, ElementsAre("Ready"));
  ASSERT_NE(patched(patch, "Ready"), nullptr);
  EXPECT_EQ(patched(patch, "Ready")->condition.status, "True");
  EXPECT_EQ(example_of(patch), "the condition Ready");
}

TEST(NodeDiffTest, WhatOthersWroteStays) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.labels["topology.kubernetes.io/zone"] = "hall-2";
  observed.labels["node-role.kubernetes.io/slurm"] = "";
  observed.annotations["cluster.x-k8s.io/machine"] = "m1";
  observed.annotations["node.alpha.kubernetes.io/ttl"] = "0";
  // slurmlet-operator's, in our domain.
  observed.annotations["slurmlet.io/record"] = "{}";
  observed.annotations["slurmlet.io/detach"] = "Draining";
  observed.annotations["slurmlet.io/drain-policy"] = "wait";
  observed.conditions.push_back({{"GPUHealthy", "True", "X", "x"}, kThen});
  observed.taints.push_back({"maintenance", "", "NoExecute"});
  for (const char* device : {"example.org/fpga", "amd.com/gpu"}) {  // a device plugin's
    observed.capacity[device] = observed.allocatable[device] = "2";
  }
  observed.unschedulable = true;
  const NodePatch patch = diff(observed, desired());
  EXPECT_FALSE(patch.has_changes);
  EXPECT_EQ(patched(patch, "GPUHealthy"), nullptr);
}

TEST(NodeDiffTest, TransitionTimeMovesWithTheStatusOnly) {
  ObservedNode observed = observed_from(desired(), kThen);
  HostFacts facts = good_facts();
  facts.slurmd.version = "23.02.7";  // another message, the same status
  facts.slurm.record->state.base = "DOWN";
  NodePatch patch = diff(observed, desired(facts));
  EXPECT_TRUE(patch.has_changes);
  EXPECT_EQ(patched(patch, "SlurmdReady")->last_transition_time, kThen);
  EXPECT_THAT(patched(patch, "SlurmdReady")->condition.message, HasSubstr("23.02.7"));
  EXPECT_EQ(patched(patch, "SlurmNodeStateDown")->condition.status, "True");
  EXPECT_EQ(patched(patch, "SlurmNodeStateDown")->last_transition_time, kNow);
  EXPECT_EQ(patched(patch, "SlurmNodeStateIdle")->last_transition_time, kNow);
  EXPECT_EQ(patched(patch, "Ready")->last_transition_time, kThen);
  patch = diff(observed_from(desired(), ""), desired());
  EXPECT_EQ(patched(patch, "Ready")->last_transition_time, kNow) << "a missing one is set";
  observed.conditions.erase(observed.conditions.begin());
  patch = diff(observed, desired());
  EXPECT_TRUE(patch.has_changes);
  EXPECT_EQ(patched(patch, "NetworkUnavailable")->last_transition_time, kNow) << "is added";
  // The node lifecycle controller overwrites ours when we were silent for too long.
  observed.conditions.back().condition = {"Ready", "Unknown", "NodeStatusUnknown", "stopped"};
  patch = diff(observed, desired());
  EXPECT_EQ(patched(patch, "Ready")->condition.status, "True");
  EXPECT_EQ(patched(patch, "Ready")->last_transition_time, kNow);
}

TEST(NodeDiffTest, ProvisionalConditionsGiveWay) {
  HostFacts drained = good_facts();
  drained.slurm.record->state = {"IDLE", {"DRAIN", "RESERVED"}};
  ObservedNode observed = observed_from(desired(drained), kThen);
  HostFacts early = good_facts();
  early.slurm = {};
  NodePatch patch = diff(observed, desired(early));
  EXPECT_EQ(patched(patch, "SlurmNodeStateDrain"), nullptr);
  EXPECT_NE(patched(patch, "Ready"), nullptr);
  EXPECT_THAT(patch.removed_conditions, IsEmpty());
  // a Node without them gets them
  std::erase_if(observed.conditions,
                [](const auto& held) { return held.condition.type == "SlurmNodeStateDrain"; });
  patch = diff(observed, desired(early));
  ASSERT_NE(patched(patch, "SlurmNodeStateDrain"), nullptr);
  EXPECT_EQ(patched(patch, "SlurmNodeStateDrain")->condition.status, "Unknown");
}

TEST(NodeDiffTest, FurtherStatesGoWhenTheyAreOver) {
  HostFacts facts = good_facts();
  facts.slurm.record->state = {"IDLE", {"RESERVED", "QUANTUM_LINKED"}};
  const ObservedNode observed = observed_from(desired(facts), kThen);
  EXPECT_FALSE(diff(observed, desired(facts)).has_changes);
  facts.slurm.record->state = {"IDLE", {"RESERVED"}};
  const NodePatch patch = diff(observed, desired(facts));
  EXPECT_THAT(patch.removed_conditions, ElementsAre("SlurmNodeStateQuantumLinked"));
  EXPECT_TRUE(patch.has_changes);
}

TEST(NodeDiffTest, OwnKeysThatAreOverAreRemoved) {
  HostFacts facts = with_all_labels();
  facts.slurm.record->reason = "bad dimm";
  const ObservedNode observed = observed_from(desired(facts), kThen);
  facts = with_gpus({{"gpu", "h100", 4}});
  facts.slurm.record->partitions = {"batch"};
  facts.slurm.record->cluster = "";
  facts.slurm_conf.cluster_name = "";
  const NodePatch patch = diff(observed, desired(facts));
  EXPECT_THAT(patch.annotations,
              IsSupersetOf({Pair("slurmlet.io/slurm-reason", std::optional<std::string>{}),
                            Pair("slurmlet.io/slurm-cluster", std::optional<std::string>{})}));
  EXPECT_THAT(patch.labels, UnorderedElementsAre(Pair("slurmlet.io/slurm-cluster", std::nullopt),
                                                 Pair("partition.slurmlet.io/gpu", std::nullopt),
                                                 Pair("feature.slurmlet.io/ib", std::nullopt),
                                                 Pair("gpu-type.slurmlet.io/a100", std::nullopt),
                                                 Pair("gpu-type.slurmlet.io/h100", "4"),
                                                 Pair("slurmlet.io/gpu-type", "h100")));
  EXPECT_TRUE(patch.has_changes);
}

TEST(NodeDiffTest, NothingIsRemovedBeforeSlurmHasTold) {
  HostFacts facts = with_all_labels();
  facts.slurm.record->reason = "bad dimm";
  const ObservedNode observed = observed_from(desired(facts), kThen);
  for (const auto& failure :
       {std::optional<SlurmFailure>{}, std::optional{SlurmFailure::kTimeout}}) {
    HostFacts early = good_facts();
    early.slurm = {};
    early.slurm.failure = failure;
    early.slurmd.version = "";
    early.slurm_conf = {};
    const NodePatch patch = diff(observed, desired(early));
    EXPECT_TRUE(patch.labels.empty() && patch.annotations.empty());
    EXPECT_TRUE(patch.capacity.empty() && patch.allocatable.empty());
  }
  facts.slurm.record->partitions_known = false;  // another node's, slurmrestd before 25.05.4
  facts.slurm.record->partitions = {"wrong"};
  EXPECT_THAT(diff(observed, desired(facts)).labels, IsEmpty());
}

TEST(NodeDiffTest, ARestartWritesNothing) {
  const ObservedNode observed = observed_from(desired(), kThen);
  HostFacts early = good_facts();
  early.slurm = {};
  EXPECT_FALSE(diff(observed, desired(early)).has_changes);
  early.slurmd.version = "";
  EXPECT_FALSE(diff(observed, desired(early)).has_changes);
  early.slurmd.liveness = SlurmdFacts::Liveness::kAbsent;
  const NodePatch patch = diff(observed, desired(early));
  ASSERT_NE(patched(patch, "SlurmdReady"), nullptr);
  EXPECT_EQ(patched(patch, "SlurmdReady")->condition.status, "False");
  // But earlier answers do not outlive the hardware.
  early.machine.memory_bytes = std::int64_t{1} << 30;
  EXPECT_THAT(diff(observed, desired(early)).allocatable,
              UnorderedElementsAre(Pair("memory", "1Gi")));
}

TEST(NodeDiffTest, SlurmsVerdictOnReadyHoldsOverARestart) {
  NodePolicy policy = policy_for("n1");
  policy.ready_follows = ReadyFollows::kSlurm;
  const HostFacts down = facts_in_state("DOWN");
  ObservedNode observed = observed_from(desired_node(down, policy, {}, "0.1.0"), kThen);
  HostFacts early = good_facts();
  early.slurm = {};
  const DesiredNode wanted = desired_node(early, policy, {}, "0.1.0");
  EXPECT_EQ(patched(diff(observed, wanted), "Ready"), nullptr);
  // The node controller's Unknown, of a long pause, does not.
  for (auto& held : observed.conditions) {
    held.condition.status = held.condition.type == "Ready" ? "Unknown" : held.condition.status;
  }
  EXPECT_NE(patched(diff(observed, wanted), "Ready"), nullptr);
  // Once asked, in vain: slurmctld's silence makes no node unready.
  early.slurm.failure = SlurmFailure::kTimeout;
  observed = observed_from(desired_node(down, policy, {}, "0.1.0"), kThen);
  const NodePatch patch = diff(observed, desired_node(early, policy, {}, "0.1.0"));
  EXPECT_EQ(patched(patch, "Ready")->condition.status, "True");
}

TEST(NodeDiffTest, ChangedLabelsAndAnnotationsOnlyAreSent) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.labels["slurmlet.io/version"] = "0.0.9";
  observed.labels.erase("kubernetes.io/os");
  observed.annotations["slurmlet.io/slurm-state"] = "DOWN";
  const NodePatch patch = diff(observed, desired());
  EXPECT_THAT(patch.labels, UnorderedElementsAre(Pair("slurmlet.io/version", "0.1.0"),
                                                 Pair("kubernetes.io/os", "linux")));
  EXPECT_THAT(patch.annotations, UnorderedElementsAre(Pair("slurmlet.io/slurm-state", "IDLE")));
}

TEST(NodeDiffTest, AGoneGpuBecomesZeroAndStaysListed) {
  ObservedNode observed = observed_from(desired(with_gpus({{"gpu", "a100", 4}})), kThen);
  NodePatch patch = diff(observed, desired(with_gpus({{"gpu", "mi300x", 8}})));
  EXPECT_THAT(patch.capacity,
              UnorderedElementsAre(Pair("nvidia.com/gpu", "0"), Pair("amd.com/gpu", "8")));
  EXPECT_EQ(patch.annotations.at("slurmlet.io/gpu-resources"), "amd.com/gpu,nvidia.com/gpu");
  const DesiredNode without = desired(with_gpus({}));
  patch = diff(observed, without);
  EXPECT_THAT(patch.capacity, UnorderedElementsAre(Pair("nvidia.com/gpu", "0")));
  EXPECT_THAT(patch.allocatable, UnorderedElementsAre(Pair("nvidia.com/gpu", "0")));
  EXPECT_FALSE(patch.annotations.contains("slurmlet.io/gpu-resources"));
  // and then it is settled
  const auto listed = observed.annotations.at("slurmlet.io/gpu-resources");
  observed = observed_from(without, kThen);
  observed.annotations["slurmlet.io/gpu-resources"] = listed;
  observed.capacity["nvidia.com/gpu"] = observed.allocatable["nvidia.com/gpu"] = "0";
  EXPECT_FALSE(diff(observed, without).has_changes);
}

TEST(NodeDiffTest, AddressesAreReplacedAsAWholeAndSoAreNodeInfoAndPort) {
  ObservedNode observed = observed_from(desired(), kThen);
  observed.addresses = {{"InternalIP", "192.0.2.9"}, {"Hostname", "n1"}};
  EXPECT_EQ(diff(observed, desired()).addresses, desired().addresses);
  EXPECT_TRUE(diff(observed, desired()).has_changes);
  observed = observed_from(desired(), kThen);
  observed.node_info.boot_id = "earlier";
  observed.kubelet_port = 10250;
  const NodePatch patch = diff(observed, desired());
  EXPECT_EQ(patch.node_info, desired().node_info);
  EXPECT_EQ(patch.kubelet_port, 0);
  EXPECT_TRUE(patch.has_changes);
}

TEST(NodeDiffTest, LabelsThatLeftTheConfigurationAreRemoved) {
  NodePolicy policy = policy_for("n1");
  policy.labels = {{"rack", "r1"}, {"site.example/row", "7"}};
  const DesiredNode before = desired_node(good_facts(), policy, {}, "0.1.0");
  ObservedNode observed = observed_from(before, kThen);
  observed.labels["admin"] = "theirs";
  policy.labels = {{"rack", "r1"}};
  NodePatch patch = diff(observed, desired_node(good_facts(), policy, {}, "0.1.0"));
  EXPECT_THAT(patch.labels, ElementsAre(Pair("site.example/row", std::nullopt)));
  EXPECT_THAT(patch.annotations, ElementsAre(Pair("slurmlet.io/configured-labels", "rack")));
  EXPECT_TRUE(patch.has_changes);
  patch = diff(observed, desired());
  EXPECT_THAT(patch.labels,
              ElementsAre(Pair("rack", std::nullopt), Pair("site.example/row", std::nullopt)));
  EXPECT_THAT(patch.annotations, ElementsAre(Pair("slurmlet.io/configured-labels", std::nullopt)));
}

// However many, but none that a node may not touch, which somebody else may have put into our
// annotation: a patch with such a one would be rejected as a whole.
TEST(NodeDiffTest, AllLabelsThatLeftTheConfigurationAreRemovedButNoForbiddenOne) {
  NodePolicy policy = policy_for("n1");
  for (int i = 100; i < 200; ++i) {
    policy.labels["site.example/label-" + std::to_string(i)] = "x";
  }
  ObservedNode observed = observed_from(desired_node(good_facts(), policy, {}, "0.1.0"), kThen);
  EXPECT_EQ(diff(observed, desired()).labels.size(), 100U);
  observed = observed_from(desired(), kThen);
  observed.labels["node-role.kubernetes.io/slurm"] = "";
  observed.labels["x.node-restriction.kubernetes.io/y"] = "";
  observed.annotations["slurmlet.io/configured-labels"] =
      "node-role.kubernetes.io/slurm,x.node-restriction.kubernetes.io/y,type,not there,,";
  EXPECT_THAT(diff(observed, desired()).labels, IsEmpty());
}

TEST(NodeDiffTest, SwapIsWrittenButIsNoNewsOfItsOwn) {
  HostFacts facts = good_facts();
  facts.machine.swap_bytes = 4096;
  const ObservedNode observed = observed_from(desired(), kThen);
  const NodePatch patch = diff(observed, desired(facts));
  EXPECT_FALSE(patch.has_changes);
  ASSERT_TRUE(patch.node_info);
  EXPECT_EQ(patch.node_info->swap_bytes, 4096);
  EXPECT_FALSE(diff(observed_from(desired(facts), kThen), desired(facts)).node_info);
}

TEST(NodeDiffTest, AMissingFactKeepsWhatTheNodeHas) {
  const ObservedNode observed = observed_from(desired(), kThen);
  HostFacts facts = good_facts();
  facts.machine.memory_bytes.reset();
  facts.machine.cpus.reset();
  const NodePatch patch = diff(observed, desired(facts));
  EXPECT_THAT(patch.capacity, IsEmpty());
  EXPECT_THAT(patch.allocatable, IsEmpty());
}

TEST(NodeDiffTest, OnlyOurOwnDomainIsOwned) {
  ObservedNode observed = observed_from(desired(), kThen);
  for (const std::string domain :
       {"slurmlet.io/", "partition.slurmlet.io/", "feature.slurmlet.io/", "gpu-type.slurmlet.io/",
        "other.slurmlet.io/", "slurmlet.io.example/", "slurmlet"}) {
    observed.labels[domain + "x"] = "1";
    observed.annotations[domain + "x"] = "1";
  }
  for (const char* type : {"SlurmNodeStateX", "SlurmNodeX", "XSlurmNodeState"}) {
    observed.conditions.push_back({{type, "True", "X", "x"}, kThen});
  }
  const NodePatch patch = diff(observed, desired());
  EXPECT_THAT(patch.labels, UnorderedElementsAre(Pair("slurmlet.io/x", std::nullopt),
                                                 Pair("partition.slurmlet.io/x", std::nullopt),
                                                 Pair("feature.slurmlet.io/x", std::nullopt),
                                                 Pair("gpu-type.slurmlet.io/x", std::nullopt)));
  EXPECT_THAT(patch.annotations, ElementsAre(Pair("slurmlet.io/x", std::nullopt)));
  EXPECT_THAT(patch.removed_conditions, ElementsAre("SlurmNodeStateX"));
}

// It takes no answer of Slurm's to know that a kind is not wanted.
TEST(NodeDiffTest, LabelsOfAKindThatIsSwitchedOffGoAtOnce) {
  const ObservedNode observed = observed_from(desired(with_all_labels()), kThen);
  HostFacts early = good_facts();
  early.slurm = {};
  NodePolicy policy = policy_for("n1");
  policy.slurm_labels = {"cluster", "version", "features"};
  EXPECT_THAT(diff(observed, desired_node(early, policy, {}, "0.1.0")).labels,
              UnorderedElementsAre(Pair("partition.slurmlet.io/batch", std::nullopt),
                                   Pair("partition.slurmlet.io/gpu", std::nullopt),
                                   Pair("gpu-type.slurmlet.io/a100", std::nullopt),
                                   Pair("slurmlet.io/gpu-type", std::nullopt)));
}

TEST(NodeDiffTest, GpuHealthGoesWithTheLastGpu) {
  HostFacts facts = with_gpus({{"gpu", "a100", 1}});
  facts.slurm_conf.gpu_files = {{"/dev/nvidia0"}};
  const ObservedNode observed = observed_from(desired(facts), kThen);
  EXPECT_THAT(diff(observed, desired(facts)).removed_conditions, IsEmpty());
  EXPECT_THAT(diff(observed, desired()).removed_conditions, ElementsAre("GPUHealthy"));
  HostFacts early = good_facts();
  early.slurm = {};
  early.slurm.failure = SlurmFailure::kTimeout;
  EXPECT_THAT(diff(observed, desired(early)).removed_conditions, IsEmpty());
}

}  // namespace node_diff_test
}  // namespace slurmlet::node
