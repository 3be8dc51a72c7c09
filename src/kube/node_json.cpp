#include <nlohmann/json.hpp>
#include <utility>

#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/object_json.h"
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
  node.node_info.declared_features = !list_at(status, "declaredFeatures").empty();
  node.kubelet_port = read_port(status);
}

json condition_json(const node::Condition& condition, const std::string& heartbeat,
                    const std::string& transition) {
  return {{"type", condition.type},         {"status", condition.status},
          {"reason", condition.reason},     {"message", condition.message},
          {"lastHeartbeatTime", heartbeat}, {"lastTransitionTime", transition}};
}

json addresses_json(const std::vector<node::Address>& addresses) {
  json list = json::array();
  for (const node::Address& address : addresses) {
    list.push_back({{"type", address.type}, {"address", address.address}});
  }
  return list;
}

// The only field of core/v1 whose JSON name starts with a capital.
json endpoints_json(int port) { return {{"kubeletEndpoint", {{"Port", port}}}}; }

json spec_json(const node::DesiredNode& desired) {
  json spec = json::object();
  put(spec, "providerID", desired.provider_id);
  if (desired.unschedulable) {
    spec["unschedulable"] = true;
  }
  for (const node::Taint& taint : desired.taints) {
    json item{{"key", taint.key}, {"effect", taint.effect}};
    put(item, "value", taint.value);
    spec["taints"].push_back(std::move(item));
  }
  return spec;
}

json node_info_json(const node::NodeInfo& info) {
  json out;
  for (const auto& [name, text] : node::kNodeInfoFields) {
    out[name] = info.*text;
  }
  if (info.swap_bytes) {
    out["swap"] = {{"capacity", *info.swap_bytes}};
  }
  return out;
}

json status_json(const node::DesiredNode& desired, const std::string& now) {
  json conditions = json::array();
  for (const node::Condition& condition : desired.conditions) {
    conditions.push_back(condition_json(condition, now, now));
  }
  json status{{"capacity", desired.capacity},
              {"allocatable", desired.allocatable},
              {"conditions", std::move(conditions)},
              {"addresses", addresses_json(desired.addresses)},
              {"nodeInfo", node_info_json(desired.node_info)}};
  if (desired.kubelet_port != 0) {
    status["daemonEndpoints"] = endpoints_json(desired.kubelet_port);
  }
  return status;
}

using KeyChanges = std::map<std::string, std::optional<std::string>>;

// null removes a key in a strategic merge and in a JSON merge.
void put_changes(json& into, const char* name, const KeyChanges& changes) {
  for (const auto& [key, value] : changes) {
    into[name][key] = value ? json(*value) : json(nullptr);
  }
}

json conditions_patch(const node::NodePatch& patch) {
  json list = json::array();
  for (const node::PatchedCondition& item : patch.conditions) {
    list.push_back(
        condition_json(item.condition, item.last_heartbeat_time, item.last_transition_time));
  }
  for (const std::string& type : patch.removed_conditions) {
    list.push_back({{"type", type}, {"$patch", "delete"}});
  }
  return list;
}

json metadata_patch(const node::NodePatch& patch) {
  json metadata = json::object();
  put(metadata, "uid", patch.uid);
  put_changes(metadata, "labels", patch.labels);
  put_changes(metadata, "annotations", patch.annotations);
  return metadata;
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

Result<SiteNode> site_node_from_json(const json& value, const ConditionTypes& conditions) {
  namespace names = node::vocabulary;
  const json& metadata = member(value, "metadata");
  SiteNode node;
  node.name = string_at(metadata, "name");
  node.uid = string_at(metadata, "uid");
  if (node.name.empty() || node.uid.empty()) {
    return Error{Code::kInvalid, "not a Node: metadata.name or metadata.uid is missing"};
  }
  for (const char* key :
       {names::kRecord, names::kSlurmNode, names::kSlurmCluster, names::kDetach, names::kDrain,
        names::kMachine, names::kClusterName, names::kClusterNamespace}) {
    if (auto text = string_at(member(metadata, "annotations"), key); !text.empty()) {
      node.annotations.emplace(key, std::move(text));
    }
  }
  // The annotation came with 0.2; 0.1 has the label.
  if (auto cluster = string_at(member(metadata, "labels"), names::kSlurmCluster);
      !cluster.empty()) {
    node.annotations.emplace(names::kSlurmCluster, std::move(cluster));
  }
  node.deleting = find(metadata, "deletionTimestamp") != nullptr;
  const json& spec = member(value, "spec");
  node.unschedulable = bool_at(spec, "unschedulable");
  node.provider_id = string_at(spec, "providerID");
  each_object(member(value, "status"), "conditions", [&](const json& one) {
    if (conditions.contains(string_at(one, "type"))) {
      node.conditions.push_back({{string_at(one, "type"), string_at(one, "status"),
                                  string_at(one, "reason"), string_at(one, "message")},
                                 string_at(one, "lastTransitionTime")});
    }
  });
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
  machine.sleeping =
      string_at(annotations, node::vocabulary::kSkipRemediation) == node::vocabulary::kSleeping;
  machine.controller =
      string_at(annotations, node::vocabulary::kSlurmRole) == node::vocabulary::kController ||
      string_at(member(metadata, "labels"), node::vocabulary::kSlurmRole) ==
          node::vocabulary::kController;
  machine.drain_policy = string_at(annotations, node::vocabulary::kDrainPolicy);
  if (find(annotations, node::vocabulary::kDeleteMachine) != nullptr) {
    machine.delete_mark = string_at(annotations, node::vocabulary::kDeleteMachine);
  }
  machine.deployment = string_at(member(metadata, "labels"), node::vocabulary::kDeployment);
  machine.created_at = parse_rfc3339(string_at(metadata, "creationTimestamp"));
  if (machine.namespace_name.empty() || machine.name.empty() || machine.uid.empty()) {
    return Error{Code::kInvalid, "not a Machine: its namespace, name or uid is missing"};
  }
  const json& spec = member(value, "spec");
  machine.cluster = string_at(spec, "clusterName");
  machine.provider_id = string_at(spec, "providerID");
  const json& status = member(value, "status");
  machine.node = string_at(member(status, "nodeRef"), "name");
  machine.provisioned = bool_at(member(status, "initialization"), "infrastructureProvisioned") ||
                        bool_at(status, "infrastructureReady");  // v1beta1
  each_object(status, "addresses", [&machine](const json& address) {
    machine.addresses.push_back(string_at(address, "address"));
  });
  return machine;
}

std::string node_create_body(const node::DesiredNode& desired, WallTime now) {
  json metadata{{"name", desired.name}};
  put(metadata, "labels", desired.labels);
  put(metadata, "annotations", desired.annotations);
  return to_text({{"apiVersion", "v1"},
                  {"kind", "Node"},
                  {"metadata", std::move(metadata)},
                  {"spec", spec_json(desired)},
                  {"status", status_json(desired, rfc3339(now))}});
}

std::string node_patch_body(const node::NodePatch& patch) {
  json status = json::object();
  put_changes(status, "capacity", patch.capacity);
  put_changes(status, "allocatable", patch.allocatable);
  put(status, "conditions", conditions_patch(patch));
  if (patch.addresses) {
    // Without this element the server would merge by type and keep addresses that are gone.
    json addresses = addresses_json(*patch.addresses);
    addresses.push_back({{"$patch", "replace"}});
    status["addresses"] = std::move(addresses);
  }
  if (patch.node_info) {
    status["nodeInfo"] = node_info_json(*patch.node_info);
    if (!patch.node_info->swap_bytes) {
      status["nodeInfo"]["swap"] = nullptr;
    }
    status["declaredFeatures"] = nullptr;
  }
  if (patch.kubelet_port) {
    status["daemonEndpoints"] = endpoints_json(*patch.kubelet_port);
  }
  json body = json::object();
  put(body, "metadata", metadata_patch(patch));
  put(body, "status", std::move(status));
  return to_text(body);
}

std::string provider_id_patch_body(const std::string& uid, const std::string& provider_id) {
  return to_text({{"metadata", {{"uid", uid}}}, {"spec", {{"providerID", provider_id}}}});
}

std::string annotations_patch_body(
    const std::string& uid, const std::map<std::string, std::optional<std::string>>& changes) {
  json metadata{{"uid", uid}, {"annotations", json::object()}};
  put_changes(metadata, "annotations", changes);
  return to_text({{"metadata", std::move(metadata)}});
}

std::string node_delete_body(const std::string& uid) {
  return to_text(
      {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}});
}

std::string machine_without_body(const Machine& machine, const char* annotation) {
  const json removed{{annotation, nullptr}};
  return to_text({{"metadata",
                   {{"uid", machine.uid},
                    {"resourceVersion", machine.resource_version},
                    {"annotations", removed}}}});
}

}  // namespace slurmlet::kube
