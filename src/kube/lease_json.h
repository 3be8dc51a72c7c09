#pragma once

// coordination.k8s.io/v1 Lease as JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/). slurmlet owns
// its Lease as a whole, so what it does not know is not carried over. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "kube/api.h"

namespace slurmlet::kube {

inline constexpr const char* kLeaseNamespace = "kube-node-lease";

// Body of POST and PUT.
std::string lease_body(const Lease& lease, const std::string& name_space = kLeaseNamespace);

// kInvalid when `value` has no metadata.name; anything else may be missing.
Result<Lease> lease_from_json(const nlohmann::json& value);

}  // namespace slurmlet::kube
