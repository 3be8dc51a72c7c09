#pragma once

// core/v1 Pod as JSON, the part that rejecting a pod needs
// (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/). Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "kube/api.h"

namespace slurmlet::kube {

// kInvalid without metadata.name, .namespace or .uid; anything else may be missing.
Result<Pod> pod_from_json(const nlohmann::json& value);

// Strategic-merge patch of pods/NAME/status that ends the pod; guarded by its uid.
std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message);

// DeleteOptions: at once, and only this very pod.
std::string pod_delete_body(const Pod& pod);

}  // namespace slurmlet::kube
