#include "kube/object_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/test_time.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

node::DesiredNode full_node() {
  node::DesiredNode node;
  node.name = "n1";
  node.labels = {{"kubernetes.io/hostname", "n1"}, {"type", "slurmlet"}};
  node.annotations = {{"slurmlet.io/state", "IDLE"}};
  node.provider_id = "metal3://ns/bmh/m3m";
  node.taints = {{"k", "v", "NoSchedule"}, {"only-key", "", "NoExecute"}};
  node.capacity = {{"cpu", "64"}, {"pods", "0"}};
  node.allocatable = {{"pods", "0"}};
  node.conditions = {{"Ready", "True", "KubeletReady", "all is well"}};
  node.addresses = {{"InternalIP", "192.0.2.7"}};
  node.node_info.machine_id = "m";
  node.node_info.operating_system = "linux";
  node.kubelet_port = 10250;
  return node;
}

TEST(NodeCreateBodyTest, HoldsEverything) {
  EXPECT_EQ(json::parse(node_create_body(full_node(), kNow)), json::parse(R"({
    "apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "n1",
      "labels": {"kubernetes.io/hostname": "n1", "type": "slurmlet"},
      "annotations": {"slurmlet.io/state": "IDLE"}},
    "spec": {"providerID": "metal3://ns/bmh/m3m",
      "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"},
                 {"key": "only-key", "effect": "NoExecute"}]},
    "status": {
      "capacity": {"cpu": "64", "pods": "0"},
      "allocatable": {"pods": "0"},
      "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
        "message": "all is well", "lastHeartbeatTime": "2026-11-20T14:00:00Z",
        "lastTransitionTime": "2026-11-20T14:00:00Z"}],
      "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
      "nodeInfo": {"machineID": "m", "systemUUID": "", "bootID": "", "kernelVersion": "",
        "osImage": "", "containerRuntimeVersion": "", "kubeletVersion": "", "kubeProxyVersion": "",
        "operatingSystem": "linux", "architecture": ""},
      "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}})"));
}

TEST(NodePatchBodyTest, IsAStrategicMerge) {
  node::NodePatch patch;
  patch.uid = "u-1";
  patch.labels = {{"a", "1"}, {"gone", std::nullopt}};
  patch.annotations = {{"b", std::nullopt}};
  patch.capacity = {{"cpu", std::nullopt}, {"memory", "1Gi"}};
  patch.allocatable = {{"nvidia.com/gpu", "0"}};
  patch.conditions = {
      {{"Ready", "False", "R", "m"}, "2026-11-20T14:00:00Z", "2026-11-20T13:00:00Z"}};
  patch.removed_conditions = {"SlurmNodeStateDown"};
  patch.addresses = std::vector<node::Address>{{"InternalIP", "192.0.2.7"}};
  patch.node_info = node::NodeInfo{};
  patch.kubelet_port = 10250;
  json body = json::parse(node_patch_body(patch));
  EXPECT_EQ(body["status"]["nodeInfo"].size(), 11U);
  EXPECT_TRUE(body["status"]["nodeInfo"]["swap"].is_null());  // gone where it was
  patch.node_info->swap_bytes = 4096;
  EXPECT_EQ(json::parse(node_patch_body(patch))["status"]["nodeInfo"]["swap"],
            json({{"capacity", 4096}}));
  ASSERT_TRUE(body["status"].contains("declaredFeatures"));
  EXPECT_TRUE(body["status"]["declaredFeatures"].is_null());  // of a kubelet
  body["status"].erase("declaredFeatures");
  body["status"].erase("nodeInfo");
  EXPECT_EQ(body, json::parse(R"({
    "metadata": {"uid": "u-1", "labels": {"a": "1", "gone": null}, "annotations": {"b": null}},
    "status": {
      "capacity": {"cpu": null, "memory": "1Gi"},
      "allocatable": {"nvidia.com/gpu": "0"},
      "conditions": [
        {"type": "Ready", "status": "False", "reason": "R", "message": "m",
         "lastHeartbeatTime": "2026-11-20T14:00:00Z", "lastTransitionTime": "2026-11-20T13:00:00Z"},
        {"type": "SlurmNodeStateDown", "$patch": "delete"}],
      "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}, {"$patch": "replace"}],
      "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}})"));
}

TEST(NodeBodyTest, HoldsOnlyWhatIsSet) {
  node::DesiredNode node;
  node.name = "n1";
  node.conditions = {{"Ready", "True", "R", "reason \xff from slurm"}};
  const json body = json::parse(node_create_body(node, kNow));
  EXPECT_EQ(body["metadata"], json({{"name", "n1"}}));
  EXPECT_EQ(body["spec"], json::object());
  EXPECT_EQ(body["status"]["addresses"], json::array());
  EXPECT_FALSE(body["status"].contains("daemonEndpoints"));
  EXPECT_EQ(body["status"]["conditions"][0]["message"], "reason \xef\xbf\xbd from slurm");
  node::NodePatch patch;
  patch.uid = "u-1";
  EXPECT_EQ(node_patch_body(patch), R"({"metadata":{"uid":"u-1"}})");
  patch.addresses = std::vector<node::Address>{};
  EXPECT_EQ(json::parse(node_patch_body(patch))["status"],
            json::parse(R"({"addresses": [{"$patch": "replace"}]})"));
  EXPECT_EQ(json::parse(provider_id_patch_body("u", "metal3://a/b/c")),
            json::parse(R"({"metadata":{"uid":"u"},"spec":{"providerID":"metal3://a/b/c"}})"));
}

TEST(NodeFromJsonTest, ReadsBackWhatWasCreated) {
  json created = json::parse(node_create_body(full_node(), kNow));
  created["metadata"]["uid"] = "u";
  created["metadata"]["resourceVersion"] = "17";
  created["metadata"]["deletionTimestamp"] = "2026-11-20T14:00:00Z";
  created["spec"]["unschedulable"] = true;
  const auto node = node_from_json(created);
  ASSERT_TRUE(node) << node.error().message;
  const node::DesiredNode desired = full_node();
  node::ObservedNode wanted;
  wanted.name = "n1";
  wanted.uid = "u";
  wanted.resource_version = "17";
  wanted.labels = desired.labels;
  wanted.annotations = desired.annotations;
  wanted.provider_id = desired.provider_id;
  wanted.unschedulable = wanted.deleting = true;
  wanted.taints = desired.taints;
  wanted.capacity = desired.capacity;
  wanted.allocatable = desired.allocatable;
  wanted.conditions = {{desired.conditions[0], "2026-11-20T14:00:00Z"}};
  wanted.addresses = desired.addresses;
  wanted.node_info = desired.node_info;
  wanted.kubelet_port = 10250;
  EXPECT_EQ(*node, wanted);
  for (const char* text :
       {"null", "[]", "{}", R"({"metadata":{}})", R"({"metadata":{"name":3}})"}) {
    EXPECT_FALSE(node_from_json(json::parse(text))) << text;
  }
}

TEST(NodeFromJsonTest, ToleratesOddShapes) {
  const auto node = node_from_json(json::parse(R"({
    "metadata": {"name": "n1", "labels": null, "annotations": ["x"], "uid": 5},
    "spec": {"taints": {"key": "k"}, "unschedulable": "yes", "providerID": null},
    "status": {"capacity": {"cpu": 64, "x": null, "y": {}}, "conditions": [7, {"type": "Ready"}],
               "addresses": "none", "nodeInfo": [],
               "daemonEndpoints": {"kubeletEndpoint": {"Port": 99999999999}}}})"));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->uid, "");
  EXPECT_THAT(node->labels, IsEmpty());
  EXPECT_THAT(node->annotations, IsEmpty());
  EXPECT_THAT(node->taints, IsEmpty());
  EXPECT_FALSE(node->unschedulable);
  EXPECT_THAT(node->capacity, ElementsAre(Pair("cpu", "64")));
  ASSERT_EQ(node->conditions.size(), 1U);
  EXPECT_EQ(node->conditions[0].condition.type, "Ready");
  EXPECT_THAT(node->addresses, IsEmpty());
  EXPECT_EQ(node->kubelet_port, 0);
}

}  // namespace
}  // namespace slurmlet::kube
