#include "config/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace slurmlet::config {
namespace {

// Settings that exclude this one, by the checks of finalize().
std::vector<std::string_view> rivals(std::string_view key) {
  if (key == "kubernetes.kubeconfig") {
    return {"kubernetes.server", "kubernetes.bootstrapKubeconfig", "kubernetes.bootstrapTokenFile"};
  }
  if (key == "kubernetes.bootstrapKubeconfig") {
    return {"kubernetes.bootstrapTokenFile", "kubernetes.server", "kubernetes.kubeconfig"};
  }
  if (key == "kubernetes.bootstrapTokenFile") {
    return {"kubernetes.bootstrapKubeconfig", "kubernetes.tokenFile", "kubernetes.certificateFile",
            "kubernetes.kubeconfig"};
  }
  if (key == "kubernetes.caFile") {
    return {"kubernetes.caData", "kubernetes.caCertHashes"};
  }
  if (key == "kubernetes.tokenFile" || key == "kubernetes.certificateFile" ||
      key == "kubernetes.keyFile") {
    return {"kubernetes.bootstrapTokenFile", "kubernetes.bootstrapKubeconfig"};
  }
  return {};
}

std::string_view rival_of(const Draft& draft, std::string_view key) {
  for (const auto rival : rivals(key)) {
    if (draft.is_set(rival)) {
      return rival;
    }
  }
  return "";
}

}  // namespace

// The bootstrap comes before what it would be a rival of: who leaves both in an image wants each
// node to have its own certificate.
const std::vector<CredentialName>& credential_names() {
  static const std::vector<CredentialName> kNames = {
      {"slurmlet.bootstrap-kubeconfig", "kubernetes.bootstrapKubeconfig"},
      {"slurmlet.bootstrap-token", "kubernetes.bootstrapTokenFile"},
      {"slurmlet.kubeconfig", "kubernetes.kubeconfig"},
      {"slurmlet.ca.crt", "kubernetes.caFile"},
      {"slurmlet.client.crt", "kubernetes.certificateFile"},
      {"slurmlet.client.key", "kubernetes.keyFile"},
      {"slurmlet.token", "kubernetes.tokenFile"},
      {"slurmlet.jwt", "slurm.jwtFile"},
      {"slurmlet.rest-ca.crt", "slurm.restCAFile"},
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
  for (const auto& [name, key] : credential_names()) {
    if (draft.is_set(key)) {
      continue;
    }
    const std::string path = fmt::format("{}/{}", *directory, name);
    const auto content = files(path);
    // One that is there but cannot be read is taken, so that the error names it.
    if (!content && content.error().code == Code::kNotFound) {
      continue;
    }
    if (const auto rival = rival_of(draft, key); !rival.empty()) {
      draft.add_warning(fmt::format("the credential {} is not used, since {} is set", name,
                                    draft.name_of(rival)));
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
