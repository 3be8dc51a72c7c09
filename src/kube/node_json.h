#pragma once

// core/v1 Node as JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/). Pure functions.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api.h"
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

// Any Node for the operator, without the annotations that it does not read. kInvalid without a name
// or uid.
Result<SiteNode> site_node_from_json(const nlohmann::json& value);

// JSON merge patch for nodes/NAME; nothing removes an annotation.
std::string annotations_patch_body(
    const std::string& uid, const std::map<std::string, std::optional<std::string>>& changes);

// DeleteOptions: the Node of this uid and no other.
std::string node_delete_body(const std::string& uid);

// A Machine of cluster.x-k8s.io/v1beta1 or v1beta2, without its api_version. kInvalid without a
// name, namespace or uid.
Result<Machine> machine_from_json(const nlohmann::json& value);

// JSON merge patch: removes our hook from the Machine as it was read.
std::string machine_release_body(const Machine& machine);

}  // namespace slurmlet::kube
