// The Node as slurmlet writes it; reading is in node_read_json.cpp.

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/node_json.h"
#include "node/vocabulary.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

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
  if (!desired.provider_id.empty()) {
    spec["providerID"] = desired.provider_id;
  }
  if (desired.unschedulable) {
    spec["unschedulable"] = true;
  }
  for (const node::Taint& taint : desired.taints) {
    json item{{"key", taint.key}, {"effect", taint.effect}};
    if (!taint.value.empty()) {
      item["value"] = taint.value;
    }
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

// null removes a key in a strategic merge.
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
  if (!patch.uid.empty()) {
    metadata["uid"] = patch.uid;
  }
  put_changes(metadata, "labels", patch.labels);
  put_changes(metadata, "annotations", patch.annotations);
  return metadata;
}

}  // namespace

std::string node_create_body(const node::DesiredNode& desired, WallTime now) {
  json metadata{{"name", desired.name}};
  if (!desired.labels.empty()) {
    metadata["labels"] = desired.labels;
  }
  if (!desired.annotations.empty()) {
    metadata["annotations"] = desired.annotations;
  }
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
  if (json conditions = conditions_patch(patch); !conditions.empty()) {
    status["conditions"] = std::move(conditions);
  }
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
  }
  if (patch.kubelet_port) {
    status["daemonEndpoints"] = endpoints_json(*patch.kubelet_port);
  }
  json body = json::object();
  if (json metadata = metadata_patch(patch); !metadata.empty()) {
    body["metadata"] = std::move(metadata);
  }
  if (!status.empty()) {
    body["status"] = std::move(status);
  }
  return to_text(body);
}

std::string provider_id_patch_body(const std::string& uid, const std::string& provider_id) {
  return to_text({{"metadata", {{"uid", uid}}}, {"spec", {{"providerID", provider_id}}}});
}

std::string annotations_patch_body(
    const std::string& uid, const std::map<std::string, std::optional<std::string>>& changes) {
  json annotations = json::object();
  for (const auto& [key, value] : changes) {
    annotations[key] = value ? json(*value) : json(nullptr);
  }
  return to_text({{"metadata", {{"uid", uid}, {"annotations", std::move(annotations)}}}});
}

std::string node_delete_body(const std::string& uid) {
  return to_text(
      {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}});
}

std::string machine_release_body(const Machine& machine) {
  const json hook{{node::vocabulary::kMachineHook, nullptr}};
  return to_text({{"metadata",
                   {{"uid", machine.uid},
                    {"resourceVersion", machine.resource_version},
                    {"annotations", hook}}}});
}

}  // namespace slurmlet::kube
