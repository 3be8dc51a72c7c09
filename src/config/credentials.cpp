#include "config/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace slurmlet::config {
namespace {

const std::vector<std::string_view> kOfBootstrap{"kubernetes.bootstrapTokenFile",
                                                 "kubernetes.bootstrapKubeconfig"};

}  // namespace

// The bootstrap comes before what it would be a rival of: who leaves both in an image wants each
// node to have its own certificate.
const std::vector<CredentialName>& credential_names() {
  static const std::vector<CredentialName> kNames = {
      {"slurmlet.bootstrap-kubeconfig",
       "kubernetes.bootstrapKubeconfig",
       {"kubernetes.bootstrapTokenFile", "kubernetes.server", "kubernetes.kubeconfig"}},
      {"slurmlet.bootstrap-token",
       "kubernetes.bootstrapTokenFile",
       {"kubernetes.bootstrapKubeconfig", "kubernetes.tokenFile", "kubernetes.certificateFile",
        "kubernetes.kubeconfig"}},
      {"slurmlet.kubeconfig",
       "kubernetes.kubeconfig",
       {"kubernetes.server", "kubernetes.bootstrapKubeconfig", "kubernetes.bootstrapTokenFile"}},
      {"slurmlet.ca.crt", "kubernetes.caFile", {"kubernetes.caData", "kubernetes.caCertHashes"}},
      {"slurmlet.client.crt", "kubernetes.certificateFile", kOfBootstrap},
      {"slurmlet.client.key", "kubernetes.keyFile", kOfBootstrap},
      {"slurmlet.token", "kubernetes.tokenFile", kOfBootstrap},
      {"slurmlet.serving.crt", "endpoint.certificateFile"},
      {"slurmlet.serving.key", "endpoint.keyFile"},
      {"slurmlet.client-ca.crt", "endpoint.clientCAFile"},
  };
  return kNames;
}

void apply_credentials(const EnvLookup& environment, const FileReader& files, Draft& draft) {
  const auto directory = environment(std::string{kCredentialsVariable});
  if (!directory || directory->empty()) {
    return;
  }
  for (const auto& [name, key, rivals] : credential_names()) {
    if (draft.is_set(key)) {
      continue;
    }
    const std::string path = fmt::format("{}/{}", *directory, name);
    const auto content = files(path);
    // One that is there but cannot be read is taken, so that the error names it.
    if (!content && content.error().code == Code::kNotFound) {
      continue;
    }
    const auto rival = std::find_if(rivals.begin(), rivals.end(),
                                    [&](std::string_view each) { return draft.is_set(each); });
    if (rival != rivals.end()) {
      draft.add_warning(fmt::format("the credential {} is not used, since {} is set", name,
                                    draft.name_of(*rival)));
      continue;
    }
    draft.set_text(*find_row(key), fmt::format("credential {}", name), path);
  }
}

EnvLookup with_unit_credentials(EnvLookup environment, const FileReader& files) {
  if (environment(std::string{kCredentialsVariable}).value_or("").empty()) {
    for (const char* directory : {"/run/credentials/slurmlet.service", "/etc/credstore",
                                  "/run/credstore", "/usr/lib/credstore"}) {
      const auto& names = credential_names();
      if (std::any_of(names.begin(), names.end(), [&](const CredentialName& one) {
            return files(fmt::format("{}/{}", directory, one.name)).has_value();
          })) {
        return [environment = std::move(environment),
                found = std::string{directory}](const std::string& name) {
          return name == kCredentialsVariable ? std::optional{found} : environment(name);
        };
      }
    }
  }
  return environment;
}

}  // namespace slurmlet::config
