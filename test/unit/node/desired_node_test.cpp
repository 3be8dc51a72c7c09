#include "node/desired_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include <functional>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace desired_node_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

DesiredNode desired(const HostFacts& facts, const NodePolicy& policy = policy_for("n1")) {
  return desired_node(facts, policy, {}, "0.1.0");
}

Metal3Facts metal3() {
  Metal3Facts facts;
  facts.uuid = "5c0f3a10-1111-4222-8333-444455556666";
  facts.provider_id = "metal3://metal3/node-0/n1";
  facts.node_name = "n1";
  facts.ip_addresses = {"203.0.113.9", "198.51.100.7"};
  facts.source = "/run/cloud-init/instance-data.json";
  return facts;
}

constexpr char kScaleDown[] = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

TEST(DesiredNodeTest, Labels) {
  EXPECT_THAT(
      desired(good_facts()).labels,
      UnorderedElementsAre(
          Pair("kubernetes.io/hostname", "n1"), Pair("kubernetes.io/os", "linux"),
          Pair("kubernetes.io/arch", "amd64"), Pair("type", "virtual-kubelet"),
          Pair("node.kubernetes.io/exclude-from-external-load-balancers", "true"),
          Pair("node.kubernetes.io/exclude-disruption", "true"),
          Pair("slurmlet.io/version", "0.1.0"), Pair("slurmlet.io/slurm-version", "22.05.8"),
          Pair("slurmlet.io/slurm-cluster", "alps"), Pair("partition.slurmlet.io/batch", "true"),
          Pair("partition.slurmlet.io/gpu", "true")));
  EXPECT_THAT(desired(good_facts()).unknown_label_prefixes, IsEmpty());
}

TEST(DesiredNodeTest, LabelsFollowThePolicy) {
  NodePolicy policy = policy_for("n1");
  policy.exclude_from_disruption = false;
  policy.labels = {{"topology.kubernetes.io/zone", "hall-2"}, {"type", "mine"}};
  const DesiredNode node = desired(good_facts(), policy);
  EXPECT_THAT(node.labels, Not(Contains(Key("node.kubernetes.io/exclude-disruption"))));
  EXPECT_THAT(node.annotations, Not(Contains(Key(kScaleDown))));
  EXPECT_THAT(node.labels, Contains(Pair("topology.kubernetes.io/zone", "hall-2")));
  EXPECT_THAT(node.labels, Contains(Pair("type", "virtual-kubelet")));
  EXPECT_EQ(node.annotations.at("slurmlet.io/configured-labels"),
            "topology.kubernetes.io/zone,type");
  EXPECT_FALSE(desired(good_facts()).annotations.contains("slurmlet.io/configured-labels"));
  // One value that is no label value would make the API server refuse the whole Node.
  HostFacts facts = good_facts();
  facts.machine.architecture = "";
  const auto labels = desired(facts, policy_for(std::string(100, 'n'))).labels;
  EXPECT_THAT(labels, Not(Contains(Key("kubernetes.io/arch"))));
  EXPECT_THAT(labels, Not(Contains(Key("kubernetes.io/hostname"))));
}

TEST(DesiredNodeTest, Metal3UuidAndProviderId) {
  const char* label = "metal3.io/uuid";
  HostFacts facts = good_facts();
  NodePolicy policy = policy_for("n1");
  EXPECT_THAT(desired(facts, policy).labels, Not(Contains(Key(label))));
  EXPECT_EQ(desired(facts, policy).provider_id, "");
  facts.metal3 = metal3();
  EXPECT_EQ(desired(facts, policy).labels.at(label), "5c0f3a10-1111-4222-8333-444455556666");
  EXPECT_EQ(desired(facts, policy).provider_id, "metal3://metal3/node-0/n1");
  policy.metal3_uuid = "configured";
  policy.provider_id = "other://id";
  EXPECT_EQ(desired(facts, policy).labels.at(label), "configured");
  EXPECT_EQ(desired(facts, policy).provider_id, "other://id");
}

TEST(DesiredNodeTest, VersionAndClusterFallBack) {
  HostFacts facts = good_facts();
  facts.slurmd.version = "";
  facts.slurm.record->version = "23.02.7";
  facts.slurm.record->cluster = "";
  facts.slurm_conf.cluster_name = "from-conf";
  const DesiredNode node = desired(facts);
  EXPECT_EQ(node.labels.at("slurmlet.io/slurm-version"), "23.02.7");
  EXPECT_EQ(node.labels.at("slurmlet.io/slurm-cluster"), "from-conf");
  EXPECT_EQ(node.node_info.container_runtime_version, "slurm://23.02.7");
}

TEST(DesiredNodeTest, Annotations) {
  HostFacts facts = good_facts();
  SlurmNodeRecord& record = *facts.slurm.record;
  record.state = {"MIXED", {"DRAIN"}};
  record.reason = "bad dimm";
  record.features = {"ib", "avx512"};
  record.gres = {{"gpu", "a100", 4}, {"nic", "", 2}};
  record.gres_used = {{"gpu", "a100", 1}};
  record.allocated_cpus = 16;
  facts.jobs = LocalJobs{2, std::nullopt};
  EXPECT_THAT(
      desired(facts).annotations,
      UnorderedElementsAre(
          Pair(kScaleDown, "true"), Pair("slurmlet.io/version", "0.1.0"),
          Pair("slurmlet.io/slurm-version", "22.05.8"),
          Pair("slurmlet.io/system-uuid", "8b2a2f8a-0000-4000-8000-000000000001"),
          Pair("slurmlet.io/slurm-cluster", "alps"), Pair("slurmlet.io/slurm-node", "n1"),
          Pair("slurmlet.io/slurm-state", "MIXED+DRAIN"),
          Pair("slurmlet.io/slurm-reason", "bad dimm"),
          Pair("slurmlet.io/slurm-partitions", "batch,gpu"),
          Pair("slurmlet.io/slurm-features", "ib,avx512"),
          Pair("slurmlet.io/slurm-gres", "gpu:a100:4,nic:2"),
          Pair("slurmlet.io/slurm-gres-used", "gpu:a100:1"), Pair("slurmlet.io/slurm-jobs", "2"),
          Pair("slurmlet.io/slurm-allocated-cpus", "16"),
          Pair("slurmlet.io/slurm-allocated-gpus", "1"),
          Pair("slurmlet.io/gpu-resources", "nvidia.com/gpu")));
}

TEST(DesiredNodeTest, AnnotationsThatFewNodesHave) {
  HostFacts facts = good_facts();
  SlurmNodeRecord& record = *facts.slurm.record;
  record.reservation = "maint-1";
  record.comment = "lent to physics";
  record.next_state = "UNKNOWN+UNDRAIN+RESUME";
  record.gres = gres_of("gpu:h200:2,gpu:h100:1,gpu:h200_3g.71gb:6,shard:h200:8");
  const auto annotations = desired(facts).annotations;
  EXPECT_EQ(annotations.at("slurmlet.io/slurm-reservation"), "maint-1");
  EXPECT_EQ(annotations.at("slurmlet.io/slurm-comment"), "lent to physics");
  EXPECT_EQ(annotations.at("slurmlet.io/slurm-next-state"), "RESUME");
  EXPECT_EQ(annotations.at("slurmlet.io/gpu-resources"), "nvidia.com/gpu,nvidia.com/mig-3g.71gb");
  record.next_state = "INVALID";
  EXPECT_THAT(desired(facts).annotations, Not(Contains(Key("slurmlet.io/slurm-next-state"))));
}

// Which are known: SlurmViewTest.
TEST(DesiredNodeTest, AllocationIsMissingWhereItIsNotKnown) {
  HostFacts facts = facts_in_state("MIXED");
  facts.slurm.record->allocated_cpus = 40;
  facts.slurm.record->allocated_memory_mib = 1000;
  facts.jobs = LocalJobs{0, 0, 0};
  auto annotations = desired(facts).annotations;
  EXPECT_EQ(annotations["slurmlet.io/slurm-allocated-cpus"], "40");
  EXPECT_EQ(annotations["slurmlet.io/slurm-allocated-memory"], "1000Mi");
  facts.slurm.stale = true;
  annotations = desired(facts).annotations;
  EXPECT_FALSE(annotations.contains("slurmlet.io/slurm-allocated-cpus"));
  EXPECT_FALSE(annotations.contains("slurmlet.io/slurm-allocated-memory"));
}

TEST(DesiredNodeTest, AllocatedGpusAreWholeOnes) {
  const std::tuple<const char*, const char*, const char*> kRows[] = {
      {"gpu:a100:4", "gpu:a100:0", "0"},
      {"gpu:a100:4", "gpu:a100:3,shard:a100:8", "3"},
      {"gpu:a100:2,gpu:h100:2", "gpu:a100:1,gpu:h100:2", "3"},
      {"gpu:h200:2,gpu:h200_3g.71gb:4", "gpu:h200:1,gpu:h200_3g.71gb:4", "1"},
      {"gpu:a100:4", "", ""},     // not told
      {"", "gpu:0,shard:0", ""},  // Slurm lists every kind on every node
      {"nic:4", "nic:4", ""}};
  for (const auto& [gres, used, gpus] : kRows) {
    HostFacts facts = good_facts();
    facts.slurm.record->gres = gres_of(gres);
    facts.slurm.record->gres_used = gres_of(used);
    EXPECT_EQ(desired(facts).annotations["slurmlet.io/slurm-allocated-gpus"], gpus);
  }
}

// 3 of 7 slices are no number of GPUs.
TEST(DesiredNodeTest, AllocatedSlicesThatNoTypeTellsAreNoGpus) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = {{"gpu", "", 7}};
  facts.slurm.record->gres_used = {{"gpu", "", 3}};
  facts.machine.gpus = {{"0000:17:00.0", "nvidia", "/dev/nvidia0", true, 7}};
  facts.machine.gpus_by_pci_vendor = {{"10de", 1}};
  EXPECT_FALSE(desired(facts).annotations.contains("slurmlet.io/slurm-allocated-gpus"));
  facts.machine.gpus->front().slices = 0;  // six cards are missing, then
  EXPECT_EQ(desired(facts).annotations["slurmlet.io/slurm-allocated-gpus"], "3");
}

TEST(DesiredNodeTest, TaintsAndThenTheConfiguredOnes) {
  NodePolicy policy = policy_for("n1");
  policy.taints = {{"site.example/hpc", "yes", "NoSchedule"}};
  EXPECT_THAT(desired(good_facts(), policy).taints,
              ElementsAre(Taint{"virtual-kubelet.io/provider", "slurm", "NoSchedule"},
                          Taint{"virtual-kubelet.io/provider", "slurm", "NoExecute"},
                          policy.taints.front()));
}

TEST(DesiredNodeTest, InternalIp) {
  const struct {
    std::vector<std::string> node_ips;
    bool metal3;
    std::vector<std::string> machine;
    std::vector<std::string> wanted;
  } kRows[] = {
      {{}, false, {"192.0.2.101", "198.51.100.7"}, {"192.0.2.101"}},
      {{"192.0.2.55"}, false, {"192.0.2.101"}, {"192.0.2.55"}},
      {{"192.0.2.55"}, true, {"198.51.100.7"}, {"192.0.2.55"}},
      {{"192.0.2.55", "2001:db8::5"}, true, {"198.51.100.7"}, {"192.0.2.55", "2001:db8::5"}},
      // an address of the metadata counts only if the machine has it
      {{}, true, {"192.0.2.101", "198.51.100.7"}, {"198.51.100.7"}},
      {{}, true, {"192.0.2.101", "198.51.100.7", "203.0.113.9"}, {"203.0.113.9"}},
      {{}, true, {"192.0.2.101"}, {"192.0.2.101"}},
      {{}, true, {}, {}},
      {{}, false, {}, {}},
      {{}, false, {"2001:db8::5"}, {"2001:db8::5"}},
  };
  for (const auto& row : kRows) {
    HostFacts facts = good_facts();
    facts.machine.ip_addresses = row.machine;
    if (row.metal3) {
      facts.metal3 = metal3();
    }
    NodePolicy policy = policy_for("n1");
    policy.node_ips = row.node_ips;
    std::vector<Address> wanted;
    for (const auto& ip : row.wanted) {
      wanted.push_back({"InternalIP", ip});
    }
    policy.publish_hostname = false;
    EXPECT_EQ(desired(facts, policy).addresses, wanted);
    policy.publish_hostname = true;
    wanted.push_back({"Hostname", "n1"});
    EXPECT_EQ(desired(facts, policy).addresses, wanted);
  }
}

TEST(DesiredNodeTest, ALongReasonDoesNotCutOffHowManyJobsRun) {
  HostFacts facts = good_facts();
  facts.slurm.record->state = {"MIXED", {"DRAIN"}};
  facts.slurm.record->reason = std::string(2000, 'x');
  facts.jobs = LocalJobs{};
  for (std::uint32_t id = 4000000; id < 4000030; ++id) {
    facts.jobs->job_ids.push_back(id);
  }
  facts.jobs->jobs = 30;
  NodePolicy policy = policy_for("n1");
  policy.publish_job_ids = true;
  const auto drain = condition_of(desired(facts, policy).conditions, "SlurmNodeStateDrain");
  EXPECT_THAT(drain.message, HasSubstr("30 jobs are still running (4000000, "));
  EXPECT_THAT(drain.message, EndsWith("4000019, and 10 more)"));
}

// Whatever Slurm, Metal3 or the machine say.
TEST(DesiredNodeTest, AllTextsArePlainAndShort) {
  const std::string foul =
      "x\x1b[31m\xC2\x9B"
      "2J\xE2\x80\xAEtxt\n" +
      std::string(300'000, 'y');
  HostFacts facts = facts_in_state("DOWN", {"DRAIN"});
  SlurmNodeRecord& record = *facts.slurm.record;
  for (std::string* text :
       {&record.name, &record.reason, &record.reason_user, &record.version, &record.cluster,
        &record.reservation, &record.comment, &record.extra, &record.next_state}) {
    *text = foul;
  }
  record.gres_drained = foul;
  record.partitions = std::vector<std::string>(5000, "part\x1b[1m");
  record.features = std::vector<std::string>(5000, foul.substr(0, 40));
  record.gres = std::vector<Gres>(5000, Gres{"gpu", foul.substr(0, 30), 1});
  record.gres_used = record.gres;
  facts.slurm.failure = SlurmFailure::kInvalidResponse;
  facts.slurm.failure_detail = foul;
  facts.slurmd.detail = foul;
  facts.slurmd.version = foul;
  facts.machine.os_image = foul;
  facts.machine.kernel_version = foul;
  facts.machine.memory_pressure = Pressure{true, foul};
  facts.metal3 = metal3();
  facts.metal3->uuid = foul;
  const DesiredNode node = desired(facts);
  const auto expect_plain = [](const std::string& what, const std::string& text) {
    EXPECT_LE(text.size(), 1024U) << what;
    EXPECT_EQ(text.find_first_of("\x1b\n\r\t"), std::string::npos) << what;
    EXPECT_EQ(text.find("\xC2\x9B"), std::string::npos) << what;
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << what;
  };
  std::size_t sum = 0;
  for (const auto& [key, value] : node.annotations) {
    expect_plain(key, value);
    sum += key.size() + value.size();
  }
  EXPECT_LT(sum, 24U * 1024);  // of 256 KiB that all writers share
  for (const auto& condition : node.conditions) {
    expect_plain(condition.type, condition.message);
    EXPECT_LE(condition.reason.size(), 64U);
  }
  expect_plain("osImage", node.node_info.os_image);
  expect_plain("kernelVersion", node.node_info.kernel_version);
  expect_plain("containerRuntimeVersion", node.node_info.container_runtime_version);
  for (const auto& [key, value] : node.labels) {
    EXPECT_LE(value.size(), 63U) << key;
  }
  EXPECT_TRUE(node.annotations.at("slurmlet.io/slurm-partitions").ends_with("part [1m"));
}

TEST(DesiredNodeTest, NodeInfo) {
  NodePolicy policy = policy_for("n1");
  HostFacts facts = good_facts();
  facts.machine.swap_bytes = 0;
  const NodeInfo info = desired(facts, policy).node_info;
  EXPECT_EQ(info.machine_id, "4f2a");
  EXPECT_EQ(info.system_uuid, "8b2a2f8a-0000-4000-8000-000000000001");
  EXPECT_EQ(info.boot_id, "b007");
  EXPECT_EQ(info.kernel_version, "5.14.0-570.el9");
  EXPECT_EQ(info.os_image, "Rocky Linux 9.6 (Blue Onyx)");
  EXPECT_EQ(info.operating_system, "linux");
  EXPECT_EQ(info.architecture, "amd64");
  EXPECT_EQ(info.container_runtime_version, "slurm://22.05.8");
  EXPECT_EQ(info.kubelet_version, "");
  EXPECT_EQ(info.kube_proxy_version, "");
  EXPECT_EQ(info.swap_bytes, std::nullopt) << "there is none";
  policy.kubelet_version = "v1.36.3";
  facts.machine.swap_bytes = 4096;
  EXPECT_EQ(desired(facts, policy).node_info.kubelet_version, "v1.36.3");
  EXPECT_EQ(desired(facts, policy).node_info.swap_bytes, 4096);
}

TEST(DesiredNodeTest, PolicyPassesThrough) {
  NodePolicy policy = policy_for("n1");
  for (const bool set : {false, true}) {
    policy.kubelet_port = set ? 10250 : 0;
    policy.unschedulable = set;
    EXPECT_EQ(desired(good_facts(), policy).kubelet_port, policy.kubelet_port);
    EXPECT_EQ(desired(good_facts(), policy).unschedulable, set);
  }
  EXPECT_EQ(desired(good_facts(), policy).name, "n1");
}

TEST(DesiredNodeTest, ConditionsInTheOrderThatDescribeShows) {
  HostFacts facts = good_facts();
  EXPECT_EQ(condition_of(desired(facts).conditions, "GPUHealthy").type, "") << "without GPUs";
  facts.slurm.record->gres = {{"gpu", "a100", 1}};
  facts.slurm_conf.gpu_files = {{"/dev/nvidia0"}};
  std::vector<std::string> types;
  for (const auto& condition : desired(facts).conditions) {
    types.push_back(condition.type);
  }
  EXPECT_THAT(types,
              ElementsAre("NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure",
                          "SlurmdReady", "SlurmNodeStateIdle", "SlurmNodeStateMixed",
                          "SlurmNodeStateAllocated", "SlurmNodeStateCompleting",
                          "SlurmNodeStateDrain", "SlurmNodeStateDown", "SlurmNodeStateFail",
                          "SlurmNodeStateMaintenance", "SlurmNodeStateNotResponding",
                          "SlurmNodeStateInvalidReg", "GPUHealthy", "Ready"));
}

TEST(DesiredNodeTest, SlurmsConditionsAreProvisionalUntilItWasAsked) {
  HostFacts facts = good_facts();
  EXPECT_THAT(desired(facts).provisional_conditions, IsEmpty());
  EXPECT_TRUE(desired(facts).slurm_facts_known);
  facts.slurm = {};
  const DesiredNode early = desired(facts);
  EXPECT_EQ(early.provisional_conditions.size(), 10U);
  EXPECT_TRUE(early.provisional_conditions.contains("SlurmNodeStateDrain"));
  EXPECT_FALSE(early.provisional_conditions.contains("SlurmdReady"));
  EXPECT_FALSE(early.slurm_facts_known);
  facts.slurm.failure = SlurmFailure::kTimeout;  // asked, in vain
  EXPECT_THAT(desired(facts).provisional_conditions, IsEmpty());
  EXPECT_FALSE(desired(facts).slurm_facts_known);
  facts.slurm.record = good_facts().slurm.record;  // before, and is not lost with slurmctld
  facts.slurm.stale = true;
  EXPECT_TRUE(desired(facts).slurm_facts_known);
}

// --- made anew only where something has changed

struct Change {
  const char* what;
  std::function<void(HostFacts& facts, ReadyContext& ready_context)> make;
};

const std::vector<Change> kChanges = {
    {"machine", [](auto& f, auto&) { f.machine.memory_pressure->under_pressure = true; }},
    {"order of addresses",
     [](auto& f, auto&) { std::swap(f.machine.ip_addresses[0], f.machine.ip_addresses[1]); }},
    {"GPU files", [](auto& f, auto&) { f.machine.missing_gpu_files = {"/dev/nvidia3"}; }},
    {"Metal3", [](auto& f, auto&) { f.metal3 = metal3(); }},
    {"Slurm's state", [](auto& f, auto&) { f.slurm.record->state.flags = {"DRAIN"}; }},
    {"Slurm's reason", [](auto& f, auto&) { f.slurm.record->reason = "fan"; }},
    {"Slurm's failure", [](auto& f, auto&) { f.slurm.failure = SlurmFailure::kTimeout; }},
    {"a stale answer", [](auto& f, auto&) { f.slurm.stale = true; }},
    {"slurmd", [](auto& f, auto&) { f.slurmd.liveness = SlurmdFacts::Liveness::kAbsent; }},
    {"slurm.conf", [](auto& f, auto&) { f.slurm_conf.cluster_name = "eiger"; }},
    {"jobs", [](auto& f, auto&) { f.jobs->jobs = 1; }},
    {"why jobs are unknown", [](auto& f, auto&) { f.jobs_problem = "/spool hangs"; }},
    {"grace", [](auto&, auto& c) { c.slurmd_grace_over = false; }},
    {"shutdown", [](auto&, auto& c) { c.shutting_down = true; }},
};

TEST(DesiredNodeMakerTest, MakesItAnewWhereSomethingHasChanged) {
  const NodePolicy policy = policy_for("n1");
  for (const Change& change : kChanges) {
    DesiredNodeMaker maker{policy, "0.1.0"};
    HostFacts facts = good_facts();
    ReadyContext ready_context;
    EXPECT_EQ(maker.follow(facts, ready_context), desired(facts)) << change.what;
    EXPECT_EQ(maker.follow(facts, ready_context), std::nullopt) << change.what;
    const HostFacts before = facts;
    change.make(facts, ready_context);
    const DesiredNode changed = desired_node(facts, policy, ready_context, "0.1.0");
    EXPECT_EQ(maker.follow(facts, ready_context), changed) << change.what;
    EXPECT_EQ(maker.follow(facts, ready_context), std::nullopt) << change.what;
    EXPECT_EQ(maker.follow(before, {}), desired(before)) << change.what << " and back";
  }
}

TEST(DesiredNodeMakerTest, TheFirstIsMadeWhateverIsKnown) {
  const NodePolicy policy = policy_for("n1");
  DesiredNodeMaker maker{policy, "0.1.0"};
  const auto node = maker.follow({}, {});
  ASSERT_TRUE(node);
  EXPECT_EQ(*node, desired({}));
  EXPECT_EQ(maker.follow({}, {}), std::nullopt);
  EXPECT_THAT(node->annotations,
              UnorderedElementsAre(Pair(kScaleDown, "true"), Pair("slurmlet.io/version", "0.1.0")));
  EXPECT_EQ(node->node_info.container_runtime_version, "slurm://unknown");
  EXPECT_FALSE(node->slurm_facts_known);
}

}  // namespace desired_node_test
}  // namespace slurmlet::node
