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
// Nobody but a person waits for a pod without a controller, and kubectl debug waits until the
// container has run or ended: there a container without a status is terminated with 128.
//
// So no container of a Job that never ran has an exit code: the Job controller compares each one
// other than 0 in containerStatuses and initContainerStatuses with podFailurePolicy.onExitCodes,
// and whatever number stood there, a rule with NotIn would match it. Ephemeral containers are not
// compared, and kubectl debug waits for the end of its own: they terminate with 128 as well.
std::string pod_failed_body(const Pod& pod, const std::string& reason, const std::string& message);

// DeleteOptions: at once, and only this very pod.
std::string pod_delete_body(const Pod& pod);

}  // namespace slurmlet::kube
