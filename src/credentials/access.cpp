#include "credentials/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/child_limits.h"
#include "base/file.h"
#include "base/rfc3339.h"
#include "base/token_file.h"
#include "credentials/own_credentials.h"
#include "host/addresses.h"
#include "http/proxy_choice.h"
#include "kube/kubeconfig.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"

namespace slurmlet::credentials {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNodeUserPrefix = "system:node:";

Status read_into(kube::ClusterAccess& access, const char* what, const std::string& path,
                 std::optional<std::string>& text, std::string& name) {
  if (path.empty()) {
    return {};
  }
  auto content = read_file(path);
  if (!content) {
    return content.error().with_prefix(what);
  }
  text = *std::move(content);
  name = path;
  access.files.emplace_back(path);
  return {};
}

Result<kube::ClusterAccess> read_access(const config::KubernetesSettings& settings) {
  if (!settings.kubeconfig.empty()) {
    return kube::load_kubeconfig(settings.kubeconfig);
  }
  if (settings.server.empty()) {
    return Error{Code::kInvalid,
                 "no API server is configured: give --kubeconfig FILE (or KUBECONFIG, or "
                 "kubernetes.kubeconfig in the configuration file)"};
  }
  kube::ClusterAccess access;
  access.server = settings.server;
  access.token_file = settings.token_file;
  tls::PemSources& pem = access.pem;
  TRY(read_into(access, "CA certificate", settings.ca_file, pem.ca, pem.ca_name));
  TRY(read_into(access, "client certificate", settings.certificate_file, pem.certificate,
                pem.certificate_name));
  TRY(read_into(access, "client key", settings.key_file, pem.key, pem.key_name));
  if (!settings.ca_data.empty()) {
    pem.ca = settings.ca_data;
    pem.ca_name = "kubernetes.caData";
  }
  return access;
}

// NAME of system:node:NAME, "" of anybody else.
std::string node_named_by(const std::optional<tls::CertificateSummary>& certificate) {
  return certificate && certificate->common_name.starts_with(kNodeUserPrefix)
             ? certificate->common_name.substr(kNodeUserPrefix.size())
             : "";
}

http::Endpoint endpoint_of(const kube::ClusterAccess& access,
                           const config::KubernetesSettings& settings) {
  http::Endpoint endpoint;
  endpoint.url = access.server;
  endpoint.proxy = access.proxy_url.empty()
                       ? http::proxy_for(access.server, settings.https_proxy, settings.no_proxy)
                       : access.proxy_url;
  endpoint.server_name = access.tls_server_name;
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  return endpoint;
}

// Distinguishes one reading from another without keeping a second copy of a secret.
std::vector<std::string> fingerprint_of(const kube::ClusterAccess& access) {
  std::vector<std::string> out;
  for (const std::string* part : {&access.server, &access.proxy_url, &access.tls_server_name,
                                  &access.token, &access.token_file}) {
    out.push_back(tls::sha256(*part));
  }
  for (const auto* part : {&access.pem.ca, &access.pem.certificate, &access.pem.key}) {
    out.push_back(*part ? tls::sha256(**part) : "");
  }
  return out;
}

std::string identity_of(const kube::ClusterAccess& access,
                        const config::KubernetesSettings& settings) {
  const fs::path own = tls::CertificateStore{settings.cert_dir, kClientStoreName}.current_path();
  const bool is_own =
      std::find(access.files.begin(), access.files.end(), own) != access.files.end();
  std::string parts;
  for (const std::string& part :
       {access.server, is_own ? own.string() : access.pem.certificate.value_or(""), access.token,
        access.token_file}) {
    parts += tls::sha256(part);
  }
  return tls::base64_encode(tls::sha256(parts));
}

std::vector<fs::path> files_of(const kube::ClusterAccess& access) {
  std::vector<fs::path> all = access.files;
  if (!access.token_file.empty()) {
    all.emplace_back(access.token_file);
  }
  std::vector<fs::path> out;  // a certificate and its key may share a file
  for (auto& file : all) {
    if (std::find(out.begin(), out.end(), file) == out.end()) {
      out.push_back(std::move(file));
    }
  }
  return out;
}

// Also what a kubeconfig names. A CA is no secret, unless a key is beside it.
void hide_secrets(const kube::ClusterAccess& access) {
  auto secrets = files_of(access);
  std::erase_if(secrets, [&](const fs::path& file) {
    return file == access.pem.ca_name && file != access.pem.key_name;
  });
  hide_from_children(secrets);
}

}  // namespace

struct ApiAccess::Current {
  std::shared_ptr<const http::Credentials> credentials;
  std::string ca_pem;
  std::string proxy_url;  // of the kubeconfig
  std::vector<fs::path> files;
  std::vector<std::string> fingerprint;
  std::string identity;    // credential_identity()
  std::string token_path;  // "" = no token file
  std::shared_ptr<TokenFile> token_file;
};

ApiAccess::ApiAccess(config::KubernetesSettings settings, const Clock& clock)
    : settings_(std::move(settings)),
      clock_(&clock),
      current_(std::make_shared<Published<Current>>()) {}

Result<ApiAccess> ApiAccess::open(const config::Settings& settings, const Clock& clock) {
  ApiAccess out{settings.kubernetes, clock};
  auto current = TRY(out.read(nullptr));
  if (current.token_file) {
    TRY(current.token_file->reload());
  }
  out.current_->set(std::move(current));
  return out;
}

Result<ApiAccess::Current> ApiAccess::read(const Current* before) const {
  const auto access = TRY(read_access(settings_));
  Current out;
  out.files = files_of(access);
  hide_secrets(access);
  out.fingerprint = fingerprint_of(access);
  out.identity = identity_of(access, settings_);
  out.ca_pem = access.pem.ca.value_or("");
  out.proxy_url = access.proxy_url;
  out.token_path = access.token_file;
  // The same file goes on with the token that it gave last.
  if (before != nullptr && before->token_path == out.token_path) {
    out.token_file = before->token_file;
  } else if (!out.token_path.empty()) {
    out.token_file = std::make_shared<TokenFile>(out.token_path, *clock_);
  }
  if (before != nullptr && before->fingerprint == out.fingerprint) {
    out.credentials = before->credentials;
    return out;
  }
  auto identity = TRY(tls::ClientIdentity::make(access.pem));
  // The keys live on as OpenSSL objects; no second copy in memory.
  http::Credentials credentials{endpoint_of(access, settings_), std::move(identity), {}};
  if (out.token_file) {
    // Not token(): a file system that hangs must not keep the lease from being renewed.
    credentials.token = [file = out.token_file] { return file->held(); };
  } else {
    credentials.token = [token = access.token] { return token; };
  }
  out.credentials = std::make_shared<const http::Credentials>(std::move(credentials));
  return out;
}

// What only a replacement must have: there is an old one to go on with.
Status ApiAccess::check_replacement(const Current& fresh, const Current& before,
                                    const std::string& node_name) const {
  if (fresh.credentials == before.credentials) {
    return {};
  }
  const std::string file = credential_file(fresh);
  const std::string named = node_named_by(fresh.credentials->identity->certificate());
  if (!node_name.empty() && !named.empty() && named != node_name) {
    return Error{Code::kInvalid,
                 fmt::format("{}: the client certificate is for node \"{}\", this node is \"{}\"; "
                             "replace it with one for system:node:{}",
                             file, named, node_name, node_name)};
  }
  const WallTime now = clock_->now().wall;
  const auto expired = [now](const Current& current) {
    const auto certificate = current.credentials->identity->certificate();
    return certificate && certificate->not_after <= now;
  };
  if (expired(fresh) && !expired(before)) {
    return Error{
        Code::kInvalid,
        fmt::format("{}: the client certificate expired at {}; replace it with a valid one", file,
                    rfc3339(fresh.credentials->identity->certificate()->not_after))};
  }
  // Whether it can be used at all shows with a client.
  const auto client = http::make_curl_client([&fresh] { return fresh.credentials; });
  return client ? Status{} : Status{client.error()};
}

void ApiAccess::use(const Fresh& fresh) {
  if (fresh) {
    current_->set(*fresh);
  }
}

Result<ApiAccess::Fresh> ApiAccess::read_again(const std::string& node_name) const {
  const auto before = current_->get();
  auto fresh = TRY(read(before.get()));
  TRY(check_replacement(fresh, *before, node_name));
  if (fresh.token_file) {
    TRY(fresh.token_file->reload());
  }
  if (fresh.credentials == before->credentials && fresh.files == before->files) {
    return Fresh{};
  }
  return std::make_shared<const Current>(std::move(fresh));
}

Status ApiAccess::reload(const std::string& node_name) {
  use(TRY(read_again(node_name)));
  return {};
}

http::CredentialSource ApiAccess::source() const {
  return [current = current_] { return current->get()->credentials; };
}

std::string ApiAccess::credential_file(const Current& current) const {
  if (!current.token_path.empty()) {
    return current.token_path;
  }
  return settings_.kubeconfig.empty() ? settings_.certificate_file : settings_.kubeconfig;
}

std::string ApiAccess::credential_file() const { return credential_file(*current_->get()); }

std::vector<fs::path> ApiAccess::files() const { return current_->get()->files; }

Result<std::unique_ptr<http::Client>> ApiAccess::connect() const {
  return http::make_curl_client(source());
}

std::string ApiAccess::server() const { return current_->get()->credentials->endpoint.url; }

kube::ClusterAccess ApiAccess::cluster() const {
  const auto current = current_->get();
  const http::Endpoint& endpoint = current->credentials->endpoint;
  kube::ClusterAccess out;
  out.server = endpoint.url;
  out.proxy_url = current->proxy_url;
  out.tls_server_name = endpoint.server_name;
  if (!current->ca_pem.empty()) {
    out.pem.ca = current->ca_pem;
  }
  return out;
}

std::string ApiAccess::ca_pem() const { return current_->get()->ca_pem; }

std::optional<tls::CertificateSummary> ApiAccess::client_certificate() const {
  return current_->get()->credentials->identity->certificate();
}

std::string ApiAccess::route_source() const {
  const http::HostPort server_at = http::server_of(server());
  return host::route_source(server_at.host, server_at.port);
}

std::string ApiAccess::node_of_credential() const { return node_named_by(client_certificate()); }

std::string ApiAccess::credential_identity() const { return current_->get()->identity; }

std::string ApiAccess::credential_warning() const {
  const auto certificate = client_certificate();
  if (!certificate || certificate->common_name.starts_with(kNodeUserPrefix)) {
    return "";
  }
  return fmt::format(
      "the client certificate is for \"{}\", not for a node (system:node:NAME, group "
      "system:nodes): it may have more rights than a compute node should",
      certificate->common_name);
}

}  // namespace slurmlet::credentials
