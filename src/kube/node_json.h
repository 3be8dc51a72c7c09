#pragma once

// core/v1 Node as JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/). Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "node/node.h"
#include "node/node_diff.h"

namespace slurmlet::kube {

// Body of POST: the whole Node, status included; conditions begin at `now`.
std::string node_create_body(const node::DesiredNode& desired, WallTime now);

// Strategic-merge patch for nodes/NAME/status. Merge keys of core/v1: conditions and addresses by
// type; addresses are replaced as a whole.
std::string node_patch_body(const node::NodePatch& patch);

// Strategic-merge patch for nodes/NAME.
std::string provider_id_patch_body(const std::string& uid, const std::string& provider_id);

// kInvalid when `value` has no metadata.name; anything else may be missing or of an unknown shape.
Result<node::ObservedNode> node_from_json(const nlohmann::json& value);

}  // namespace slurmlet::kube
