#include "operator/token_secrets.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/json_read.h"
#include "operator/init_command.h"

namespace slurmlet::op {
namespace {

constexpr const char* kType = "kubernetes.io/service-account-token";
constexpr const char* kOfAccount = "kubernetes.io/service-account.name";

}  // namespace

std::string secrets_path() {
  return std::string{"/api/v1/namespaces/"} + kAccountNamespace + "/secrets";
}

nlohmann::json token_secret(const std::string& place) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"generateName", std::string{kAccount} + "-"},
            {"annotations", {{kOfAccount, kAccount}, {kTokenPlace, place}}}}},
          {"type", kType}};
}

Result<std::vector<std::string>> token_secrets(kube::RestObjectApi& api, const std::string& place) {
  const auto all =
      TRY(api.list_metadata(secrets_path() + "?fieldSelector=type%3D" + url_encode(kType)));
  std::vector<std::string> out;
  for (const auto& secret : all) {
    const auto& metadata = kube::member(secret, "metadata");
    const auto& annotations = kube::member(metadata, "annotations");
    const std::string found = kube::string_at(annotations, kTokenPlace);
    if (!found.empty() && kube::string_at(annotations, kOfAccount) == kAccount &&
        (place.empty() || found == place)) {
      out.push_back(secrets_path() + "/" + url_encode(kube::string_at(metadata, "name")));
    }
  }
  return out;
}

}  // namespace slurmlet::op
