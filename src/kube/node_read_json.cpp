#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/node_json.h"
#include "node/vocabulary.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

// Calls `take` for each object in the list `key`; anything else there is passed over.
template <typename Take>
void each_object(const json& parent, const char* key, const Take& take) {
  for (const json& item : list_at(parent, key)) {
    if (item.is_object()) {
      take(item);
    }
  }
}

void read_metadata(const json& metadata, node::ObservedNode& node) {
  node.name = string_at(metadata, "name");
  node.uid = string_at(metadata, "uid");
  node.resource_version = string_at(metadata, "resourceVersion");
  node.labels = string_map_at(metadata, "labels");
  node.annotations = string_map_at(metadata, "annotations");
  node.deleting = find(metadata, "deletionTimestamp") != nullptr;
}

void read_spec(const json& spec, node::ObservedNode& node) {
  node.provider_id = string_at(spec, "providerID");
  node.unschedulable = bool_at(spec, "unschedulable");
  each_object(spec, "taints", [&node](const json& taint) {
    node.taints.push_back(
        {string_at(taint, "key"), string_at(taint, "value"), string_at(taint, "effect")});
  });
}

node::NodeInfo read_node_info(const json& info) {
  node::NodeInfo read;
  for (const auto& [name, text] : node::kNodeInfoFields) {
    read.*text = string_at(info, name);
  }
  read.swap_bytes = int_at(member(info, "swap"), "capacity");
  return read;
}

int read_port(const json& status) {
  const json& kubelet = member(member(status, "daemonEndpoints"), "kubeletEndpoint");
  const auto port = int_at(kubelet, "Port").value_or(0);
  return port > 0 && port <= 65535 ? static_cast<int>(port) : 0;
}

void read_status(const json& status, node::ObservedNode& node) {
  node.capacity = string_map_at(status, "capacity");
  node.allocatable = string_map_at(status, "allocatable");
  each_object(status, "conditions", [&node](const json& item) {
    node.conditions.push_back({{string_at(item, "type"), string_at(item, "status"),
                                string_at(item, "reason"), string_at(item, "message")},
                               string_at(item, "lastTransitionTime")});
  });
  each_object(status, "addresses", [&node](const json& item) {
    node.addresses.push_back({string_at(item, "type"), string_at(item, "address")});
  });
  node.node_info = read_node_info(member(status, "nodeInfo"));
  node.kubelet_port = read_port(status);
}

}  // namespace

Result<node::ObservedNode> node_from_json(const json& value) {
  node::ObservedNode node;
  read_metadata(member(value, "metadata"), node);
  if (node.name.empty()) {
    return Error{Code::kInvalid, "not a Node: metadata.name is missing"};
  }
  read_spec(member(value, "spec"), node);
  read_status(member(value, "status"), node);
  return node;
}

Result<SiteNode> site_node_from_json(const json& value) {
  namespace names = node::vocabulary;
  const json& metadata = member(value, "metadata");
  SiteNode node;
  node.name = string_at(metadata, "name");
  node.uid = string_at(metadata, "uid");
  if (node.name.empty() || node.uid.empty()) {
    return Error{Code::kInvalid, "not a Node: metadata.name or metadata.uid is missing"};
  }
  for (const char* key : {names::kRecord, names::kSlurmNode, names::kDetach, names::kMachine,
                          names::kClusterName, names::kClusterNamespace}) {
    if (auto text = string_at(member(metadata, "annotations"), key); !text.empty()) {
      node.annotations.emplace(key, std::move(text));
    }
  }
  node.host_uuid = string_at(member(metadata, "labels"), names::kLabelMetal3Uuid);
  node.deleting = find(metadata, "deletionTimestamp") != nullptr;
  const json& spec = member(value, "spec");
  node.unschedulable = bool_at(spec, "unschedulable");
  node.provider_id = string_at(spec, "providerID");
  return node;
}

Result<Machine> machine_from_json(const json& value) {
  const json& metadata = member(value, "metadata");
  Machine machine;
  machine.namespace_name = string_at(metadata, "namespace");
  machine.name = string_at(metadata, "name");
  machine.uid = string_at(metadata, "uid");
  machine.resource_version = string_at(metadata, "resourceVersion");
  if (find(metadata, "deletionTimestamp") != nullptr) {
    machine.deleted_at = parse_rfc3339(string_at(metadata, "deletionTimestamp"));
    if (!machine.deleted_at) {  // no deadline follows from that
      return Error{Code::kInvalid, "not a Machine: metadata.deletionTimestamp is not a time"};
    }
  }
  const json& annotations = member(metadata, "annotations");
  machine.hooked = annotations.is_object() && annotations.contains(node::vocabulary::kMachineHook);
  machine.drain_policy = string_at(annotations, node::vocabulary::kDrainPolicy);
  if (machine.namespace_name.empty() || machine.name.empty() || machine.uid.empty()) {
    return Error{Code::kInvalid, "not a Machine: its namespace, name or uid is missing"};
  }
  const json& spec = member(value, "spec");
  machine.cluster = string_at(spec, "clusterName");
  machine.provider_id = string_at(spec, "providerID");
  const json& status = member(value, "status");
  machine.node = string_at(member(status, "nodeRef"), "name");
  each_object(status, "addresses", [&machine](const json& address) {
    machine.addresses.push_back(string_at(address, "address"));
  });
  return machine;
}

}  // namespace slurmlet::kube
