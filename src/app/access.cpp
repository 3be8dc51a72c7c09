#include "app/access.h"

#include <fmt/format.h>

#include <utility>

#include "base/rfc3339.h"
#include "base/text.h"
#include "host/source_address.h"
#include "kube/kubeconfig.h"
#include "kube/token_file.h"

namespace slurmlet::app {
namespace {

constexpr std::string_view kNodeUserPrefix = "system:node:";

Result<kube::ClusterAccess> read_access(const config::KubernetesSettings& settings) {
  if (!settings.kubeconfig.empty()) {
    return kube::load_kubeconfig(settings.kubeconfig);
  }
  if (settings.server.empty()) {
    return Error{Code::kInvalid,
                 "no API server is configured: give --kubeconfig FILE (or KUBECONFIG, or "
                 "kubernetes.kubeconfig in the configuration file)"};
  }
  return kube::access_from_files({settings.server, settings.ca_file, settings.certificate_file,
                                  settings.key_file, settings.token_file});
}

http::TokenSource token_source(const kube::ClusterAccess& access, const Clock& clock) {
  if (!access.token_file.empty()) {
    auto file = std::make_shared<kube::TokenFile>(access.token_file, clock);
    return [file] { return file->token(); };
  }
  if (!access.token.empty()) {
    return [token = access.token] { return token; };
  }
  return [] { return std::string{}; };
}

}  // namespace

Result<ApiAccess> ApiAccess::open(const config::Settings& settings, const Clock& clock) {
  auto access = read_access(settings.kubernetes);
  if (!access) {
    return access.error();
  }
  auto identity = tls::ClientIdentity::make(access->pem);
  if (!identity) {
    return identity.error();
  }
  ApiAccess out;
  out.access_ = std::move(*access);
  out.identity_ = std::move(*identity);
  out.token_ = token_source(out.access_, clock);
  // The keys live on as OpenSSL objects; no second copy in memory.
  out.access_.pem = {};
  out.access_.token.clear();
  return out;
}

Result<std::unique_ptr<http::Client>> ApiAccess::connect() const {
  http::Endpoint endpoint;
  endpoint.url = access_.server;
  endpoint.proxy = access_.proxy_url;
  endpoint.server_name = access_.tls_server_name;
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  return http::make_curl_client(endpoint, identity_, token_);
}

std::string ApiAccess::route_source() const {
  std::string rest = access_.server.substr(access_.server.find("://") + 3);
  rest = rest.substr(0, rest.find('/'));
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  const int port = has_port ? parse_int<int>(rest.substr(colon + 1)).value_or(443) : 443;
  return host::route_source(has_port ? rest.substr(0, colon) : rest, port);
}

std::string ApiAccess::node_of_credential() const {
  const auto certificate = identity_->certificate();
  if (!certificate || !certificate->common_name.starts_with(kNodeUserPrefix)) {
    return "";
  }
  return certificate->common_name.substr(kNodeUserPrefix.size());
}

std::string ApiAccess::credential_warning(WallTime now) const {
  const auto certificate = identity_->certificate();
  if (!certificate) {
    return "";
  }
  if (!certificate->common_name.starts_with(kNodeUserPrefix)) {
    return fmt::format(
        "the client certificate is for \"{}\", not for a node (system:node:NAME, group "
        "system:nodes): it may have more rights than a compute node should",
        certificate->common_name);
  }
  if (certificate->not_after <= now) {
    return fmt::format("the client certificate expired at {}: put a fresh one in place",
                       rfc3339(certificate->not_after));
  }
  return "";
}

}  // namespace slurmlet::app
