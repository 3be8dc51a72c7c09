#include "operator/manifests.h"

#include <iterator>

namespace slurmlet::op {

Result<std::vector<kube::Manifest>> operator_manifests(bool with_client_certificates) {
  auto out = TRY(kube::read_manifests(kAdmissionManifests, "deploy/operator/admission.yaml"));
  auto rights = TRY(kube::read_manifests(kRbacManifests, "deploy/operator/rbac.yaml"));
  if (with_client_certificates) {
    const auto more = TRY(kube::read_manifests(kClientCertificateManifests,
                                               "deploy/operator/rbac-client-certificates.yaml"));
    rights.insert(rights.end(), more.begin(), more.end());
  }
  out.insert(out.end(), std::make_move_iterator(rights.begin()),
             std::make_move_iterator(rights.end()));
  return out;
}

Result<std::vector<kube::Manifest>> shared_manifests() {
  return kube::read_manifests(kNodeWritesManifests, "deploy/admission/node-writes.yaml");
}

}  // namespace slurmlet::op
