#include "operator/manifests.h"

#include <iterator>

namespace slurmlet::op {

Result<std::vector<kube::Manifest>> operator_manifests(const MoreRights& more) {
  struct File {
    bool is_wanted;
    std::string_view text;
    const char* path;
  };
  std::vector<kube::Manifest> out;
  for (const auto& [is_wanted, text, path] : {
           File{true, kAdmissionManifests, "deploy/operator/admission.yaml"},
           File{true, kRbacManifests, "deploy/operator/rbac.yaml"},
           File{more.client_certificates, kClientCertificateManifests,
                "deploy/operator/rbac-client-certificates.yaml"},
           File{more.autoscaling, kAutoscalingManifests, "deploy/operator/rbac-autoscaling.yaml"},
           File{more.power, kPowerManifests, "deploy/operator/power.yaml"},
       }) {
    if (is_wanted) {
      auto some = TRY(kube::read_manifests(text, path));
      out.insert(out.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
    }
  }
  return out;
}

Result<std::vector<kube::Manifest>> shared_manifests() {
  return kube::read_manifests(kNodeWritesManifests, "deploy/admission/node-writes.yaml");
}

}  // namespace slurmlet::op
