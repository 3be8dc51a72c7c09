#include "kube/pod_json.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "kube/json_read.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

std::optional<OwnerRef> controller_of(const json& metadata) {
  const json* owners = find(metadata, "ownerReferences");
  if (owners == nullptr || !owners->is_array()) {
    return std::nullopt;
  }
  for (const json& owner : *owners) {
    if (bool_at(owner, "controller")) {
      return OwnerRef{string_at(owner, "kind"), string_at(owner, "name"), string_at(owner, "uid")};
    }
  }
  return std::nullopt;
}

bool has_ended(const json& value, const char* statuses, const std::string& name) {
  const json* status = find(value, "status");
  const json* list = status == nullptr ? nullptr : find(*status, statuses);
  if (list == nullptr || !list->is_array()) {
    return false;
  }
  for (const json& entry : *list) {
    if (string_at(entry, "name") == name) {
      const json* state = find(entry, "state");
      return state != nullptr && find(*state, "terminated") != nullptr;
    }
  }
  return false;
}

void add_containers(const json& value, const char* list, const char* statuses, Pod& pod) {
  const json* spec = find(value, "spec");
  const json* containers = spec == nullptr ? nullptr : find(*spec, list);
  if (containers == nullptr || !containers->is_array()) {
    return;
  }
  for (const json& container : *containers) {
    std::string name = string_at(container, "name");
    const bool ended = has_ended(value, statuses, name);
    const bool ephemeral = std::string_view{list} == "ephemeralContainers";
    pod.containers.push_back({std::move(name), string_at(container, "image"), ephemeral, ended});
  }
}

// No container ever ran: 128 is what container runtimes give for one that could not be started.
constexpr int kNeverRan = 128;

json container_statuses(const Pod& pod, bool ephemeral, const std::string& reason,
                        const std::string& message) {
  json out = json::array();
  for (const PodContainer& container : pod.containers) {
    if (container.ephemeral == ephemeral) {
      out.push_back({{"name", container.name},
                     {"image", container.image},
                     {"imageID", ""},
                     {"ready", false},
                     {"restartCount", 0},
                     {"state",
                      {{"terminated",
                        {{"exitCode", kNeverRan}, {"reason", reason}, {"message", message}}}}}});
    }
  }
  return out;
}

}  // namespace

Result<Pod> pod_from_json(const json& value) {
  const json* metadata = find(value, "metadata");
  if (metadata == nullptr) {
    return Error{Code::kInvalid, "not a Pod: metadata is missing"};
  }
  Pod pod;
  pod.namespace_name = string_at(*metadata, "namespace");
  pod.name = string_at(*metadata, "name");
  pod.uid = string_at(*metadata, "uid");
  if (pod.namespace_name.empty() || pod.name.empty() || pod.uid.empty()) {
    return Error{Code::kInvalid, "not a Pod: metadata.name, .namespace or .uid is missing"};
  }
  pod.deleting = find(*metadata, "deletionTimestamp") != nullptr;
  pod.controller = controller_of(*metadata);
  if (const json* status = find(value, "status")) {
    pod.phase = string_at(*status, "phase");
  }
  add_containers(value, "containers", "containerStatuses", pod);
  add_containers(value, "ephemeralContainers", "ephemeralContainerStatuses", pod);
  return pod;
}

std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message) {
  json status{{"phase", "Failed"}, {"reason", reason}, {"message", message}};
  // The lists are atomic: each is written whole or not at all.
  if (json statuses = container_statuses(pod, false, reason, message); !statuses.empty()) {
    status["containerStatuses"] = std::move(statuses);
  }
  if (json statuses = container_statuses(pod, true, reason, message); !statuses.empty()) {
    status["ephemeralContainerStatuses"] = std::move(statuses);
  }
  return to_text({{"metadata", {{"uid", pod.uid}}}, {"status", std::move(status)}});
}

std::string pod_delete_body(const Pod& pod) {
  return to_text({{"apiVersion", "v1"},
                  {"kind", "DeleteOptions"},
                  {"gracePeriodSeconds", 0},
                  {"preconditions", {{"uid", pod.uid}}}});
}

}  // namespace slurmlet::kube
