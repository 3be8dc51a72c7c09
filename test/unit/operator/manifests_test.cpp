// What init applies is what deploy/ has.

#include "operator/manifests.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "fixtures.h"

namespace slurmlet::op {
namespace {

using testing::Contains;
using testing::Field;

TEST(Manifests, AreTheFilesOfDeploy) {
  const std::pair<std::string_view, const char*> kFiles[] = {
      {kAdmissionManifests, "operator/admission.yaml"},
      {kRbacManifests, "operator/rbac.yaml"},
      {kClientCertificateManifests, "operator/rbac-client-certificates.yaml"},
      {kAutoscalingManifests, "operator/rbac-autoscaling.yaml"},
      {kPowerManifests, "operator/power.yaml"},
      {kNodeWritesManifests, "admission/node-writes.yaml"}};
  for (const auto& [text, file] : kFiles) {
    EXPECT_EQ(*read_file(fixtures() / "../../deploy" / file), text) << file;
  }
}

TEST(Manifests, HaveTheirPaths) {
  const auto manifests = operator_manifests({});
  ASSERT_TRUE(manifests) << manifests.error().message;
  const auto has = [&](const char* path) {
    return testing::Matches(Contains(Field(&kube::Manifest::path, path)))(*manifests);
  };
  EXPECT_TRUE(has("/api/v1/namespaces/slurmlet-system"));
  EXPECT_TRUE(has("/api/v1/namespaces/kube-system/serviceaccounts/slurmlet-operator"));
  EXPECT_TRUE(has("/apis/rbac.authorization.k8s.io/v1/clusterroles/slurmlet-operator"));
  EXPECT_TRUE(
      has("/apis/rbac.authorization.k8s.io/v1/namespaces/slurmlet-system/rolebindings/"
          "slurmlet-operator"));
  EXPECT_TRUE(has(
      "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/slurmlet-operator-nodes"));
}

TEST(Manifests, RightsThatNotEveryOperatorNeedsAreAskedFor) {
  const auto least = operator_manifests({})->size();
  EXPECT_EQ(operator_manifests({.client_certificates = true})->size(), least + 2);
  EXPECT_EQ(operator_manifests({.autoscaling = true})->size(), least + 2);
  EXPECT_EQ(operator_manifests({.power = true})->size(), least + 6);
}

TEST(Manifests, AKindThatIsNotKnownIsNamed) {
  const auto manifests =
      kube::read_manifests("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n", "deploy/pod.yaml");
  ASSERT_FALSE(manifests);
  EXPECT_EQ(manifests.error().message, "deploy/pod.yaml: kind \"Pod\" is not known here");
}

}  // namespace
}  // namespace slurmlet::op
