#pragma once

// Files of deploy/ as they were when the program was built (slurmlet_embed in CMakeLists.txt), and
// which of them `slurmlet-operator init` applies, in this order: limits come before rights.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/object_api.h"

namespace slurmlet::op {

extern const std::string_view kAdmissionManifests, kRbacManifests, kClientCertificateManifests,
    kAutoscalingManifests, kPowerManifests, kNodeWritesManifests;

// Of every fieldManager in metadata.managedFields it is init's.
inline constexpr const char* kInitManager = "slurmlet-operator-init";

// Rights that not every operator needs.
struct MoreRights {
  bool client_certificates = false;  // approveClientsOfGroup
  bool autoscaling = false;
  bool power = false;
};

// What only the operator needs.
Result<std::vector<kube::Manifest>> operator_manifests(const MoreRights& more);
// What keeps nodes from the operator's annotations. Others may have applied it for themselves.
Result<std::vector<kube::Manifest>> shared_manifests();

}  // namespace slurmlet::op
