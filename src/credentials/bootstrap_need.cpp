// When a bootstrap is needed: what the files of this node say, without asking anybody.

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/rfc3339.h"
#include "credentials/bootstrap.h"
#include "credentials/own_credentials.h"
#include "kube/kubeconfig.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"

namespace slurmlet::credentials {

bool has_bootstrap(const config::Settings& settings) {
  return !settings.kubernetes.bootstrap_kubeconfig.empty() ||
         !settings.kubernetes.bootstrap_token_file.empty();
}

std::vector<std::filesystem::path> bootstrap_files(const config::Settings& settings) {
  std::vector<std::filesystem::path> out;
  const auto& kubernetes = settings.kubernetes;
  for (const auto& file :
       {kubernetes.bootstrap_kubeconfig, kubernetes.bootstrap_token_file, kubernetes.ca_file}) {
    if (!file.empty()) {
      out.emplace_back(file);
    }
  }
  return out;
}

std::string bootstrap_need(const config::Settings& settings, const std::string& node_name,
                           WallTime now) {
  const std::string& path = settings.kubernetes.kubeconfig;
  const auto access = kube::load_kubeconfig(path);
  if (!access) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) ? access.error().message
                                                  : path + " does not exist yet";
  }
  if (access->pem.certificate.empty()) {
    return "";  // a token: nothing to be seen in it
  }
  const auto certificate = tls::read_certificate(access->pem.certificate, path);
  if (!certificate) {
    return certificate.error().message;
  }
  // Any other user was put there on purpose.
  if (certificate->common_name.starts_with("system:node:") &&
      certificate->common_name != "system:node:" + node_name) {
    return fmt::format("the certificate in {} is for \"{}\", this node is \"{}\"", path,
                       certificate->common_name, node_name);
  }
  if (certificate->not_after <= now) {
    return fmt::format("the certificate in {} expired at {}", path,
                       rfc3339(certificate->not_after));
  }
  return "";
}

Status discard_certificate(const config::Settings& settings) {
  const tls::CertificateStore store{settings.kubernetes.cert_dir, kClientStoreName};
  std::error_code error;
  std::filesystem::remove(store.current_path(), error);
  return error ? Status{Error{Code::kInternal,
                              store.current_path().string() + ": " + error.message()}}
               : Status{};
}

}  // namespace slurmlet::credentials
