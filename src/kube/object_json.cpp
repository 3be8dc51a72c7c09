#include "kube/object_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

// The API server takes any length of these three from whoever may create pods; owners are
// remembered long after their pods.
constexpr std::size_t kMaxOwnerKind = 63;
constexpr std::size_t kMaxOwnerName = 253;
constexpr std::size_t kMaxOwnerUid = 128;

std::optional<OwnerRef> controller_of(const json& metadata) {
  for (const json& owner : list_at(metadata, "ownerReferences")) {
    if (bool_at(owner, "controller")) {
      return OwnerRef{plain_text(string_at(owner, "kind"), kMaxOwnerKind),
                      plain_text(string_at(owner, "name"), kMaxOwnerName),
                      plain_text(string_at(owner, "uid"), kMaxOwnerUid)};
    }
  }
  return std::nullopt;
}

const json* terminated_in(const json& status, const char* state_key) {
  return find(member(status, state_key), "terminated");
}

// The entry of container `name`, nullptr if there is none.
template <typename Json>  // json, const json
Json* status_of(Json& statuses, const std::string& name) {
  for (Json& entry : statuses) {
    if (string_at(entry, "name") == name) {
      return &entry;
    }
  }
  return nullptr;
}

// A list of the pod's status as text, "" if it is empty.
std::string statuses_text(const json& statuses) {
  return statuses.empty() ? std::string{} : to_text(statuses);
}

json statuses_from(const std::string& text) {
  auto list = text.empty() ? Result<json>{json::array()} : parse_json(text);
  return list && list->is_array() ? *std::move(list) : json::array();
}

std::vector<PodContainer> containers_in(const json& containers, const json& statuses) {
  std::vector<PodContainer> out;
  for (const json& container : containers) {
    std::string name = string_at(container, "name");
    const json* status = status_of(statuses, name);
    const bool ended = status != nullptr && terminated_in(*status, "state") != nullptr;
    out.push_back({std::move(name), string_at(container, "image"), ended});
  }
  return out;
}

constexpr int kLost = 137;      // the kubelet's, for a container that it cannot find any more
constexpr int kNeverRan = 128;  // of container runtimes, for what could not be started

// See object_json.h.
void end_container(json& status, const std::string& reason, const std::string& message) {
  if (!status.is_object() || terminated_in(status, "state") != nullptr) {
    return;
  }
  status["ready"] = false;
  if (status.contains("started")) {
    status["started"] = false;
  }
  if (const json* running = find(member(status, "state"), "running")) {
    json ended{{"exitCode", kLost}, {"reason", reason}, {"message", message}};
    if (const json* since = find(*running, "startedAt")) {
      ended["startedAt"] = *since;
    }
    if (const json* id = find(status, "containerID")) {
      ended["containerID"] = *id;
    }
    status["state"] = {{"terminated", std::move(ended)}};
  } else if (const json* before = terminated_in(status, "lastState")) {
    status["state"] = {{"terminated", json(*before)}};
  } else {
    status["state"] = {{"waiting", {{"reason", reason}, {"message", message}}}};
  }
}

void put_ended(json& into, const char* key, json statuses, const std::string& reason,
               const std::string& message) {
  for (json& status : statuses) {
    end_container(status, reason, message);
  }
  put(into, key, std::move(statuses));
}

// With an entry that says it ended for each of `containers`.
json all_ended(json statuses, const std::vector<PodContainer>& containers,
               const std::string& reason, const std::string& message) {
  for (const PodContainer& container : containers) {
    json* status = status_of(statuses, container.name);
    if (status == nullptr) {
      status = &statuses.emplace_back(json{{"name", container.name},
                                           {"image", container.image},
                                           {"imageID", ""},
                                           {"restartCount", 0}});
    }
    end_container(*status, reason, message);
    if (terminated_in(*status, "state") == nullptr) {
      (*status)["state"] = {
          {"terminated", {{"exitCode", kNeverRan}, {"reason", reason}, {"message", message}}}};
    }
  }
  return statuses;
}

json involved_object(const ObjectRef& about) {
  json object{{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  put(object, "namespace", about.namespace_name);
  put(object, "uid", about.uid);
  return object;
}

}  // namespace

std::string lease_body(const Lease& lease, const std::string& name_space) {
  json metadata{{"name", lease.name}, {"namespace", name_space}};
  put(metadata, "resourceVersion", lease.resource_version);
  if (!lease.owner_node_uid.empty()) {
    metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                {"kind", "Node"},
                                                {"name", lease.owner_node_name},
                                                {"uid", lease.owner_node_uid}}});
  }
  json spec{{"holderIdentity", lease.holder_identity},
            {"leaseDurationSeconds", lease.duration_seconds}};
  put(spec, "renewTime", lease.renew_time);
  put(spec, "acquireTime", lease.acquire_time);
  return to_text({{"apiVersion", "coordination.k8s.io/v1"},
                  {"kind", "Lease"},
                  {"metadata", std::move(metadata)},
                  {"spec", std::move(spec)}});
}

std::string lease_renewal_body(const std::string& holder, const std::string& renew_time) {
  return json::array({{{"op", "test"}, {"path", "/spec/holderIdentity"}, {"value", holder}},
                      {{"op", "copy"}, {"from", "/spec/renewTime"}, {"path", "/spec/acquireTime"}},
                      {{"op", "replace"}, {"path", "/spec/renewTime"}, {"value", renew_time}}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Lease> lease_from_json(const json& value) {
  const json& metadata = member(value, "metadata");
  Lease lease;
  lease.name = string_at(metadata, "name");
  if (lease.name.empty()) {
    return Error{Code::kInvalid, "not a Lease: metadata.name is missing"};
  }
  lease.resource_version = string_at(metadata, "resourceVersion");
  for (const json& owner : list_at(metadata, "ownerReferences")) {
    if (string_at(owner, "kind") == "Node") {
      lease.owner_node_name = string_at(owner, "name");
      lease.owner_node_uid = string_at(owner, "uid");
      break;
    }
  }
  const json& spec = member(value, "spec");
  lease.holder_identity = string_at(spec, "holderIdentity");
  lease.renew_time = string_at(spec, "renewTime");
  lease.acquire_time = string_at(spec, "acquireTime");
  const auto duration = int_at(spec, "leaseDurationSeconds").value_or(0);
  const bool plausible = duration > 0 && std::in_range<int>(duration);
  lease.duration_seconds = plausible ? static_cast<int>(duration) : 0;
  return lease;
}

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
  const json& spec = member(value, "spec");
  const json& status = member(value, "status");
  pod.phase = string_at(status, "phase");
  const json& statuses = list_at(status, "containerStatuses");
  const json& ephemeral_statuses = list_at(status, "ephemeralContainerStatuses");
  pod.init_container_statuses = statuses_text(list_at(status, "initContainerStatuses"));
  pod.container_statuses = statuses_text(statuses);
  pod.ephemeral_container_statuses = statuses_text(ephemeral_statuses);
  pod.ephemeral_containers =
      containers_in(list_at(spec, "ephemeralContainers"), ephemeral_statuses);
  if (!pod.controller) {
    pod.unreported_containers = containers_in(list_at(spec, "containers"), statuses);
    std::erase_if(pod.unreported_containers, [&](const PodContainer& container) {
      return status_of(statuses, container.name) != nullptr;
    });
  }
  return pod;
}

std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message) {
  json status{{"phase", "Failed"}, {"reason", reason}, {"message", message}};
  // The lists are atomic: each is written whole or not at all.
  put_ended(status, "initContainerStatuses", statuses_from(pod.init_container_statuses), reason,
            message);
  put_ended(
      status, "containerStatuses",
      all_ended(statuses_from(pod.container_statuses), pod.unreported_containers, reason, message),
      reason, message);
  put_ended(status, "ephemeralContainerStatuses",
            all_ended(statuses_from(pod.ephemeral_container_statuses), pod.ephemeral_containers,
                      reason, message),
            reason, message);
  return to_text({{"metadata", {{"uid", pod.uid}}}, {"status", std::move(status)}});
}

std::string pod_delete_body(const Pod& pod) {
  return to_text({{"apiVersion", "v1"},
                  {"kind", "DeleteOptions"},
                  {"gracePeriodSeconds", 0},
                  {"preconditions", {{"uid", pod.uid}}}});
}

std::string event_body(const Event& event) {
  return to_text({{"apiVersion", "v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", event.name}, {"namespace", event.namespace_name}}},
                  {"involvedObject", involved_object(event.about)},
                  {"type", event.type},
                  {"reason", event.reason},
                  {"message", one_line(event.message, kMaxEventMessageBytes)},
                  {"source", {{"component", event.source_component}, {"host", event.source_host}}},
                  {"reportingComponent", event.source_component},
                  {"reportingInstance", event.source_host},
                  {"firstTimestamp", rfc3339(event.first_seen)},
                  {"lastTimestamp", rfc3339(event.last_seen)},
                  {"count", event.count}});
}

std::string event_patch_body(const Event& event) {
  return to_text({{"count", event.count},
                  {"message", one_line(event.message, kMaxEventMessageBytes)},
                  {"lastTimestamp", rfc3339(event.last_seen)}});
}

}  // namespace slurmlet::kube
