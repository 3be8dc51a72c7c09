#include "kube/pod_json.h"

#include <nlohmann/json.hpp>

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
  const json* annotations = find(*metadata, "annotations");
  pod.mirror =
      annotations != nullptr && find(*annotations, "kubernetes.io/config.mirror") != nullptr;
  pod.controller = controller_of(*metadata);
  if (const json* status = find(value, "status")) {
    pod.phase = string_at(*status, "phase");
  }
  return pod;
}

std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message) {
  return to_text({{"metadata", {{"uid", pod.uid}}},
                  {"status", {{"phase", "Failed"}, {"reason", reason}, {"message", message}}}});
}

std::string pod_delete_body(const Pod& pod) {
  return to_text({{"apiVersion", "v1"},
                  {"kind", "DeleteOptions"},
                  {"gracePeriodSeconds", 0},
                  {"preconditions", {{"uid", pod.uid}}}});
}

}  // namespace slurmlet::kube
