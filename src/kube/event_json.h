#pragma once

// core/v1 Event as JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/, in its core/v1
// form, which `kubectl describe` and event exporters read). Pure functions.

#include <cstddef>
#include <string>

#include "kube/api.h"

namespace slurmlet::kube {

// Longer messages are cut: the API server refuses more than 1 kB in events.k8s.io, and no one reads
// more in `kubectl describe`.
inline constexpr std::size_t kMaxEventMessageBytes = 1024;

// Body of POST.
std::string event_body(const Event& event);

// Strategic-merge patch of an Event seen again: count, message and lastTimestamp.
std::string event_patch_body(const Event& event);

}  // namespace slurmlet::kube
