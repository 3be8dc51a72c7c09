#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/check/check_gather.h"
#include "credentials/bootstrap.h"
#include "credentials/own_credentials.h"
#include "kube/cluster_info.h"
#include "kube/kubeconfig.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"

namespace slurmlet::cli {
namespace {

// Whether a kubeconfig or PEM file holds a key or a token, and not only names or certificates.
bool holds_secret(const std::string& text) {
  constexpr std::array kMarks{"PRIVATE KEY-----", "client-key-data", "token:", "\"token\""};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const char* mark) { return text.find(mark) != std::string::npos; });
}

void add_secret(const std::string& path, bool always, std::vector<SecretFile>& out) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) {
    return;
  }
  const auto text = read_file(path);
  if (always || (text && holds_secret(*text))) {
    out.push_back({path, info.st_mode & 07777U});
  }
}

std::string source_of(const config::KubernetesSettings& kubernetes) {
  return !kubernetes.kubeconfig.empty()         ? kubernetes.kubeconfig
         : !kubernetes.certificate_file.empty() ? kubernetes.certificate_file
                                                : kubernetes.token_file;
}

// Not so where we may not look.
bool is_missing(const std::string& path) {
  struct stat info {};
  return path.empty() ||
         (::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR));
}

std::optional<Error> token_problem(const std::string& file) {
  const auto text = TRY(read_file(file));
  const auto token = kube::parse_bootstrap_token(std::string{trim(text)});
  return token ? std::nullopt : std::optional{token.error().with_prefix(file)};
}

std::optional<Error> kubeconfig_problem(const std::string& file) {
  const auto access = TRY(kube::load_kubeconfig(file));
  if (access.token.empty() && access.token_file.empty()) {
    return Error{Code::kInvalid, file + " contains no token"};
  }
  return std::nullopt;
}

BootstrapSeen look_at_bootstrap(const config::KubernetesSettings& kubernetes) {
  BootstrapSeen out;
  const bool is_kubeconfig = !kubernetes.bootstrap_kubeconfig.empty();
  out.file = is_kubeconfig ? kubernetes.bootstrap_kubeconfig : kubernetes.bootstrap_token_file;
  out.problem = is_kubeconfig ? kubeconfig_problem(out.file) : token_problem(out.file);
  add_secret(out.file, true, out.secrets);
  return out;
}

// With the bootstrap credential in the place of the node's.
Result<credentials::ApiAccess> open_bootstrap(config::Settings settings, const Clock& clock) {
  auto& kubernetes = settings.kubernetes;
  if (!kubernetes.ca_cert_hashes.empty()) {
    return Error{
        Code::kInvalid,
        "not checked: its CA is discovered with kubernetes.caCertHashes when slurmlet starts"};
  }
  kubernetes.kubeconfig = kubernetes.bootstrap_kubeconfig;
  kubernetes.token_file = kubernetes.bootstrap_token_file;
  return credentials::ApiAccess::open(settings, clock);
}

}  // namespace

Credentials look_at_credentials(const config::Settings& settings, const std::string& node_name,
                                const Clock& clock) {
  const auto& kubernetes = settings.kubernetes;
  Credentials out;
  CredentialSeen& own = out.own;
  own.node_name = node_name;
  own.source = source_of(kubernetes);
  own.has_server = !kubernetes.kubeconfig.empty() || !kubernetes.server.empty();
  own.has_bootstrap = kubernetes.has_bootstrap();
  own.is_missing = is_missing(kubernetes.kubeconfig);
  if (auto access = credentials::ApiAccess::open(settings, clock)) {
    own.certificate = access->client_certificate();
    for (const auto& file : access->files()) {
      add_secret(file.string(), file == kubernetes.token_file, own.secrets);
    }
    out.access.emplace(std::move(*access));
  } else {
    own.problem = access.error();
  }
  if (!own.has_bootstrap) {
    return out;
  }
  out.bootstrap = look_at_bootstrap(kubernetes);
  out.bootstrap->needed =
      !credentials::bootstrap_need(settings, node_name, clock.now().wall).empty();
  if (!out.access) {
    if (auto access = open_bootstrap(settings, clock)) {
      out.access.emplace(std::move(*access));
      out.by_bootstrap = true;
    }
  }
  return out;
}

ServingSeen look_at_serving(const config::Settings& settings,
                            const std::optional<status::DaemonStatus>& daemon) {
  ServingSeen out;
  out.daemon = daemon;
  out.given_file = settings.endpoint.certificate_file;
  out.asked_of_cluster = settings.endpoint.server_tls_bootstrap;
  if (!out.given_file.empty()) {
    const auto text = read_file(out.given_file);
    const auto certificate = text ? tls::read_certificate(*text, out.given_file)
                                  : Result<tls::CertificateSummary>{text.error()};
    if (certificate) {
      out.certificate = *certificate;
    } else {
      out.problem = certificate.error();
    }
    return out;
  }
  const auto stored =
      tls::CertificateStore{settings.kubernetes.cert_dir, credentials::kServingStoreName}.current();
  if (!stored) {
    out.problem = stored.error();
  } else if (*stored) {
    out.certificate = (*stored)->summary;
  }
  return out;
}

}  // namespace slurmlet::cli
