// What slurmlet's calls do at a real API server. Pins what the fakes in test/unit/fakes/fake_api.h
// promise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/rfc3339.h"
#include "cluster.h"
#include "node/node_diff.h"

namespace slurmlet::kube::contract {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename T>
std::optional<Code> code_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional{result.error().code};
}

const node::ObservedCondition* condition(const node::ObservedNode& node, const std::string& type) {
  const auto at = std::ranges::find_if(
      node.conditions, [&type](const auto& held) { return held.condition.type == type; });
  return at == node.conditions.end() ? nullptr : &*at;
}

class NodeContract : public ContractTest {};

TEST_F(NodeContract, CreateKeepsAllOfIt) {
  const node::ObservedNode node = fresh_node();
  const node::DesiredNode desired = desired_node(name_);
  EXPECT_NE(node.uid, "");
  for (const auto& label : desired.labels) {
    EXPECT_THAT(node.labels, Contains(label));
  }
  EXPECT_THAT(node.taints, Contains(desired.taints[0]));
  EXPECT_THAT(node.taints, Contains(node::Taint{"node.kubernetes.io/not-ready", "", "NoSchedule"}));
  EXPECT_EQ(node.capacity, desired.capacity);
  EXPECT_EQ(node.allocatable, desired.allocatable);
  EXPECT_EQ(node.addresses, desired.addresses);
  EXPECT_EQ(node.node_info, desired.node_info);
  EXPECT_EQ(node.kubelet_port, 10250);
  ASSERT_EQ(node.conditions.size(), desired.conditions.size());
  EXPECT_EQ(node.conditions.back().condition, desired.conditions.back());
}

TEST_F(NodeContract, ASecondCreateIsAConflictAndTheNodeCanBeRead) {
  const node::ObservedNode node = ensure_node();
  EXPECT_EQ(code_of(nodes_->create(desired_node(name_), clock_.now().wall)), Code::kConflict);
  const auto read = nodes_->get(name_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->uid, node.uid);
}

TEST_F(NodeContract, PatchMergesConditionsReplacesAddressesAndRemovesKeys) {
  const node::ObservedNode before = fresh_node();
  node::NodePatch patch;
  patch.uid = before.uid;
  patch.labels = {{"type", std::nullopt}, {"slurmlet.io/x", "1"}};
  patch.annotations = {{"slurmlet.io/slurm-state", std::nullopt}, {"slurmlet.io/y", "2"}};
  patch.capacity = {{"nvidia.com/gpu", std::nullopt}, {"cpu", "8"}};
  patch.allocatable = {{"nvidia.com/gpu", "0"}};
  const std::string now = rfc3339(clock_.now().wall);
  patch.conditions = {{{"Ready", "False", "Test", "t"}, now, "2026-01-02T03:04:05Z"},
                      {{"SlurmNodeStateDrain", "True", "Test", "t"}, now, now}};
  patch.removed_conditions = {"SlurmNodeStateDown"};
  patch.addresses = std::vector<node::Address>{{"InternalIP", "192.0.2.9"}};
  patch.node_info = before.node_info;
  patch.node_info->boot_id = "boot-2";
  patch.kubelet_port = 10260;
  const auto after = nodes_->patch_status(name_, patch);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_FALSE(after->labels.contains("type"));
  EXPECT_EQ(after->labels.at("slurmlet.io/x"), "1");
  EXPECT_EQ(after->labels.at("kubernetes.io/hostname"), name_);
  EXPECT_FALSE(after->annotations.contains("slurmlet.io/slurm-state"));
  EXPECT_EQ(after->annotations.at("slurmlet.io/y"), "2");
  EXPECT_FALSE(after->capacity.contains("nvidia.com/gpu"));
  EXPECT_EQ(after->capacity.at("cpu"), "8");
  EXPECT_EQ(after->capacity.at("pods"), "0");
  EXPECT_EQ(after->allocatable.at("nvidia.com/gpu"), "0");
  EXPECT_EQ(condition(*after, "SlurmNodeStateDown"), nullptr);
  EXPECT_NE(condition(*after, "SlurmNodeStateDrain"), nullptr);
  EXPECT_NE(condition(*after, "MemoryPressure"), nullptr);
  ASSERT_NE(condition(*after, "Ready"), nullptr);
  EXPECT_EQ(condition(*after, "Ready")->condition.status, "False");
  EXPECT_EQ(condition(*after, "Ready")->last_transition_time, "2026-01-02T03:04:05Z");
  EXPECT_EQ(after->addresses, *patch.addresses);
  EXPECT_EQ(after->node_info.boot_id, "boot-2");
  EXPECT_EQ(after->kubelet_port, 10260);
}

TEST_F(NodeContract, ADoubledConditionIsOneAgain) {
  admin("DELETE", "/api/v1/nodes/" + name_);
  node::DesiredNode doubled = desired_node(name_);
  doubled.conditions.push_back({"Ready", "False", "Forged", ""});
  const auto created = nodes_->create(doubled, clock_.now().wall);
  ASSERT_TRUE(created) << created.error().message;
  const auto count = [](const node::ObservedNode& node) {
    return std::ranges::count_if(node.conditions,
                                 [](const auto& held) { return held.condition.type == "Ready"; });
  };
  ASSERT_EQ(count(*created), 2) << "the API server accepts it";
  const node::DesiredNode desired = desired_node(name_);
  const auto after =
      nodes_->patch_status(name_, node::node_diff(*created, desired, clock_.now().wall));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(count(*after), 1);
  EXPECT_FALSE(node::node_diff(*after, desired, clock_.now().wall).has_changes);
}

TEST_F(NodeContract, AnotherUidIsInvalid) {
  const node::ObservedNode node = ensure_node();
  node::NodePatch patch;
  patch.uid = "00000000-0000-0000-0000-000000000000";
  patch.annotations = {{"slurmlet.io/never", "1"}};
  const auto patched = nodes_->patch_status(name_, patch);
  ASSERT_EQ(code_of(patched), Code::kInvalid);
  EXPECT_THAT(patched.error().message,
              StartsWith("PATCH /api/v1/nodes/" + name_ + "/status: 422 "));
  EXPECT_THAT(patched.error().message, HasSubstr("immutable"));
  EXPECT_EQ(code_of(nodes_->set_provider_id(name_, patch.uid, "metal3://a/b/c")), Code::kInvalid);
  const auto read = nodes_->get(name_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->annotations.contains("slurmlet.io/never"));
}

TEST_F(NodeContract, LabelsOfOthersAreDenied) {
  const node::ObservedNode node = ensure_node();
  node::NodePatch patch;
  patch.uid = node.uid;
  patch.labels = {{"node-role.kubernetes.io/slurm", ""}};
  EXPECT_EQ(code_of(nodes_->patch_status(name_, patch)), Code::kDenied);
}

TEST_F(NodeContract, OtherNodesAreDenied) {
  EXPECT_EQ(code_of(nodes_->get(name_ + "-other")), Code::kDenied);
}

TEST_F(NodeContract, ProviderIdIsWrittenOnce) {
  const node::ObservedNode node = fresh_node();
  const auto set = nodes_->set_provider_id(name_, node.uid, "metal3://ns/bmh/m3m");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->provider_id, "metal3://ns/bmh/m3m");
  EXPECT_TRUE(nodes_->set_provider_id(name_, node.uid, "metal3://ns/bmh/m3m"));
  EXPECT_EQ(code_of(nodes_->set_provider_id(name_, node.uid, "metal3://ns/bmh/other")),
            Code::kInvalid);
}

TEST_F(NodeContract, AMissingNodeIsNotFound) {
  const node::ObservedNode node = fresh_node();
  admin("DELETE", "/api/v1/nodes/" + name_);
  EXPECT_EQ(code_of(nodes_->get(name_)), Code::kNotFound);
  node::NodePatch patch;
  patch.uid = node.uid;
  patch.annotations = {{"slurmlet.io/x", "1"}};
  EXPECT_EQ(code_of(nodes_->patch_status(name_, patch)), Code::kNotFound);
  ensure_node();
}

class LeaseContract : public ContractTest {
 protected:
  Lease lease() {
    const node::ObservedNode node = ensure_node();
    const WallTime now = clock_.now().wall;
    return {name_, "",      name_ + "/uuid", 40, rfc3339_micro(now), rfc3339_micro(now),
            name_, node.uid};
  }
  static Lease without_version(Lease lease) {
    lease.resource_version.clear();
    return lease;
  }
};

TEST_F(LeaseContract, CreateUpdateAndConflict) {
  admin("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name_);
  EXPECT_EQ(code_of(leases_->get(name_)), Code::kNotFound);
  const Lease ours = lease();
  const auto created = leases_->create(ours);
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(without_version(*created), ours);
  EXPECT_EQ(code_of(leases_->create(ours)), Code::kConflict);

  EXPECT_EQ(code_of(leases_->update(ours)), Code::kInvalid) << "PUT without resourceVersion";

  Lease renewed = *created;
  renewed.renew_time = rfc3339_micro(clock_.now().wall + std::chrono::seconds{1});
  const auto updated = leases_->update(renewed);
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(without_version(*updated), without_version(renewed));
  EXPECT_EQ(code_of(leases_->update(renewed)), Code::kConflict) << "stale resourceVersion";
  const auto read = leases_->get(name_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->resource_version, updated->resource_version);

  admin("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name_);
  EXPECT_EQ(code_of(leases_->update(*updated)), std::nullopt) << "a PUT creates what was deleted";
}

TEST_F(LeaseContract, ALeaseThatIsHeldIsRenewedUnread) {
  admin("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name_);
  const Lease ours = lease();
  const std::string later = rfc3339_micro(clock_.now().wall + std::chrono::seconds{1});
  EXPECT_EQ(code_of(leases_->renew_held(name_, ours.holder_identity, later)), Code::kNotFound);
  ASSERT_TRUE(leases_->create(ours));
  EXPECT_EQ(code_of(leases_->renew_held(name_, name_ + "/other", later)), Code::kInvalid);
  const auto renewed = leases_->renew_held(name_, ours.holder_identity, later);
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_EQ(renewed->renew_time, later);
  EXPECT_EQ(renewed->acquire_time, ours.renew_time);
  EXPECT_EQ(renewed->owner_node_uid, ours.owner_node_uid);
  EXPECT_EQ(code_of(leases_->update(*renewed)), std::nullopt) << "with its resourceVersion";
}

TEST_F(LeaseContract, LeasesOfOthersAreDenied) {
  EXPECT_EQ(code_of(leases_->get(name_ + "-other")), Code::kDenied);
}

class PodContract : public ContractTest {};

TEST_F(PodContract, SetFailedIsGuardedByTheUid) {
  ensure_node();
  const Pod pod = create_pod("contract-failed", name_);
  Pod other = pod;
  other.uid = "00000000-0000-0000-0000-000000000000";
  EXPECT_THAT(code_of(pods_->set_failed(other, "R", "m")),
              ::testing::AnyOf(Code::kInvalid, Code::kConflict));
  const Status failed = pods_->set_failed(pod, "SlurmNode", "this node runs Slurm jobs only");
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(code_of(pods_->remove_now(other)), Code::kConflict);
  const Status removed = pods_->remove_now(pod);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(code_of(pods_->remove_now(pod)), Code::kNotFound);
  EXPECT_EQ(code_of(pods_->set_failed(pod, "R", "m")), Code::kNotFound);
}

class EventContract : public ContractTest {};

TEST_F(EventContract, CreateUpdateAndExpiry) {
  const node::ObservedNode node = ensure_node();
  Event event;
  event.namespace_name = "default";
  event.name = name_ + "." + std::to_string(clock_.now().wall.time_since_epoch().count());
  event.type = "Warning";
  event.reason = "ContractTest";
  event.message = std::string(5000, 'x');
  event.about.kind = "Node";
  event.about.name = name_;
  event.about.uid = name_;
  event.source_component = "slurmlet";
  event.source_host = name_;
  event.first_seen = event.last_seen = clock_.now().wall;
  EXPECT_EQ(code_of(events_->update(event)), Code::kNotFound);
  const Status created = events_->create(event);
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(code_of(events_->create(event)), Code::kConflict);
  event.count = 2;
  event.message = "again";
  const Status updated = events_->update(event);
  EXPECT_TRUE(updated) << updated.error().message;
}

}  // namespace
}  // namespace slurmlet::kube::contract
