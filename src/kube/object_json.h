#pragma once

// Node, Machine, Lease, Pod and Event as JSON. Pure functions.

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api.h"
#include "node/node.h"
#include "node/node_diff.h"

namespace slurmlet::kube {

// core/v1 Node
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/).

// Body of POST: the whole Node, status included; conditions begin at `now`.
std::string node_create_body(const node::DesiredNode& desired, WallTime now);

// Strategic-merge patch for nodes/NAME/status. Merge keys of core/v1: conditions and addresses by
// type; addresses are replaced as a whole.
std::string node_patch_body(const node::NodePatch& patch);

// Strategic-merge patch for nodes/NAME.
std::string provider_id_patch_body(const std::string& uid, const std::string& provider_id);

// kInvalid when `value` has no metadata.name; anything else may be missing or of an unknown shape.
Result<node::ObservedNode> node_from_json(const nlohmann::json& value);

using ConditionTypes = std::set<std::string>;

// Any Node for the operator, without the annotations that it does not read and conditions of other
// types. kInvalid without a name or uid.
Result<SiteNode> site_node_from_json(const nlohmann::json& value,
                                     const ConditionTypes& conditions = {});

// JSON merge patch for nodes/NAME; nothing removes an annotation.
std::string annotations_patch_body(
    const std::string& uid, const std::map<std::string, std::optional<std::string>>& changes);

// DeleteOptions: the Node of this uid and no other.
std::string node_delete_body(const std::string& uid);

// A Machine of cluster.x-k8s.io/v1beta1 or v1beta2, without its api_version. kInvalid without a
// name, namespace or uid.
Result<Machine> machine_from_json(const nlohmann::json& value);

// JSON merge patch: removes an annotation from the Machine as it was read.
std::string machine_without_body(const Machine& machine, const char* annotation);

// coordination.k8s.io/v1 Lease
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/). slurmlet owns
// its Lease as a whole, so what it does not know is not carried over.

inline constexpr const char* kLeaseNamespace = "kube-node-lease";

// Body of POST and PUT.
std::string lease_body(const Lease& lease, const std::string& name_space = kLeaseNamespace);
// JSON Patch (RFC 6902): fails where another holder is in the Lease.
std::string lease_renewal_body(const std::string& holder, const std::string& renew_time);

// kInvalid when `value` has no metadata.name; anything else may be missing.
Result<Lease> lease_from_json(const nlohmann::json& value);

// core/v1 Pod, the part that rejecting a pod needs
// (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/).

// kInvalid without metadata.name, .namespace or .uid; anything else may be missing.
Result<Pod> pod_from_json(const nlohmann::json& value);

// Strategic-merge patch of pods/NAME/status that ends the pod; guarded by its uid. Of its
// containers it says what is known, and no more:
//
//   has terminated          stays as it is
//   was running             terminated with 137 and the pod's reason, as the kubelet reports a
//                           container that it cannot find any more
//   waits to be restarted   terminated as it was the last time
//   never ran, has a status waiting, with the pod's reason
//   has no status           none is made up, as for any pod that a kubelet rejects
//
// Only a user waits for a pod without a controller, and kubectl debug waits until the
// container has run or ended: there a container without a status is terminated with 128.
//
// So no container of a Job that never ran has an exit code: the Job controller compares each one
// other than 0 in containerStatuses and initContainerStatuses with podFailurePolicy.onExitCodes,
// and whatever number stood there, a rule with NotIn would match it. Ephemeral containers are not
// compared, and kubectl debug waits for the end of its own: they terminate with 128 as well.
std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message);

// DeleteOptions: at once, and only this very pod.
std::string pod_delete_body(const Pod& pod);

// core/v1 Event
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/, in its core/v1
// form, which `kubectl describe` and event exporters read).

// Longer messages are cut: the API server rejects more than 1 kB in events.k8s.io, and no one reads
// more in `kubectl describe`.
inline constexpr std::size_t kMaxEventMessageBytes = 1024;

// Body of POST.
std::string event_body(const Event& event);

// Strategic-merge patch of an Event seen again: count, message and lastTimestamp.
std::string event_patch_body(const Event& event);

}  // namespace slurmlet::kube
