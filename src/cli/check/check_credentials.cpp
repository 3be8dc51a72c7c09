#include "cli/check/check_credentials.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "credentials/bootstrap.h"
#include "credentials/own_credentials.h"
#include "credentials/serving_certificate.h"
#include "kube/cluster_info.h"
#include "kube/kubeconfig.h"
#include "node/vocabulary.h"
#include "tls/certificate_store.h"

namespace slurmlet::cli {
namespace {

using check::Finding;
using check::Findings;
using check::Severity;

using node::vocabulary::kNodeUser;
constexpr unsigned kForOthers = 0007;
constexpr int kLastTenth = 10;  // of a certificate's life: it should have been renewed

// Whether a kubeconfig or PEM file holds a key or a token, and not only names or certificates.
bool holds_secret(const std::string& path) {
  constexpr std::array kMarks{"PRIVATE KEY-----", "client-key-data", "token:", "\"token\""};
  const auto text = read_file(path);
  return text && std::any_of(kMarks.begin(), kMarks.end(),
                             [&](const char* mark) { return contains(*text, mark); });
}

void warn_if_open(const std::string& path, Findings& out) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & kForOthers) != 0) {
    out.push_back(
        check::warning(fmt::format("{} contains a secret and is accessible to every user (mode "
                                   "{:04o})",
                                   path, info.st_mode & 07777U),
                       "chmod o= " + path));
  }
}

// Into that file; what systemd handed to the unit is a copy.
std::string put_into(const std::string& file) {
  constexpr std::string_view kHandedOver = "/run/credentials/";
  if (!file.starts_with(kHandedOver)) {
    return " into " + file + "; it is reloaded without a restart";
  }
  return " into /etc/credstore/" + file.substr(file.rfind('/') + 1) +
         " (or where LoadCredential finds it), then systemctl restart slurmlet";
}

// A plain user may not read it; only root sees whether anything is wrong.
Finding root_only(const Error& problem) {
  return check::warning(problem.message, "run slurmlet check as root");
}

std::string source_of(const config::KubernetesSettings& kubernetes) {
  return !kubernetes.kubeconfig.empty()         ? kubernetes.kubeconfig
         : !kubernetes.certificate_file.empty() ? kubernetes.certificate_file
                                                : kubernetes.token_file;
}

// A bootstrap mends what is wrong with a credential by itself.
Finding fixed_by_bootstrap(Finding finding) {
  if (finding.severity >= Severity::kWarning) {
    finding.severity = Severity::kWarning;
    finding.fix =
        "nothing to do: slurmlet requests another one with the bootstrap token; see bootstrap";
  }
  return finding;
}

std::string fresh_credential(const std::string& node_name, const std::string& source) {
  return fmt::format(
      "put a fresh credential for {}{} into {}, or set kubernetes.bootstrapKubeconfig", kNodeUser,
      node_name, source);
}

Finding judge(const config::KubernetesSettings& kubernetes, const std::string& node_name,
              const Result<credentials::ApiAccess>& access, WallTime now) {
  const std::string source = source_of(kubernetes);
  if (access) {
    const auto certificate = access->client_certificate();
    return certificate ? certificate_finding(*certificate, source, node_name, now)
                       : check::ok("a bearer token from " + source);
  }
  if (kubernetes.kubeconfig.empty() && kubernetes.server.empty()) {
    return check::error("no API server is configured",
                        "set kubernetes.kubeconfig or kubernetes.bootstrapKubeconfig");
  }
  return check::error(access.error().message, fresh_credential(node_name, source));
}

Status read_bootstrap(const config::KubernetesSettings& kubernetes, const std::string& file) {
  if (kubernetes.bootstrap_kubeconfig.empty()) {
    const auto text = TRY(read_file(file));
    const auto token = kube::parse_bootstrap_token(std::string{trim(text)});
    return token ? Status{} : token.error().with_prefix(file);
  }
  const auto access = TRY(kube::load_kubeconfig(file));
  if (access.token.empty() && access.token_file.empty()) {
    return Error{Code::kInvalid, file + " contains no token"};
  }
  return {};
}

Finding stored_serving_finding(const config::Settings& settings,
                               const std::optional<status::DaemonStatus>& daemon, WallTime now) {
  if (daemon && !daemon->serving_request.empty()) {
    return check::warning(daemon->serving_request +
                              " is waiting for approval; until then kubectl top and others cannot "
                              "verify this node",
                          "kubectl certificate approve " + daemon->serving_request);
  }
  if (daemon && !daemon->serving_problem.empty()) {
    return check::warning(daemon->serving_problem);
  }
  const auto stored =
      tls::CertificateStore{settings.kubernetes.cert_dir, credentials::kServingStoreName}.current();
  if (!stored && stored.error().code != Code::kNotFound) {
    return check::info("not checked: " + stored.error().message);
  }
  if (!stored || !*stored) {
    return check::info(
        "none yet: slurmlet requests one from the cluster once the Node is registered");
  }
  const std::string end = rfc3339((*stored)->summary.not_after);
  return (*stored)->summary.not_after > now
             ? check::ok("issued by the cluster, valid until " + end)
             : check::warning("the one the cluster issued expired at " + end,
                              "start slurmlet, and approve its new request (kubectl get csr)");
}

}  // namespace

Finding certificate_finding(const tls::CertificateSummary& certificate, const std::string& source,
                            const std::string& node_name, WallTime now) {
  const std::string wanted = std::string{kNodeUser} + node_name;
  const std::string& name = certificate.common_name;
  const std::string fresh = fresh_credential(node_name, source);
  const std::string the = "the client certificate in " + source;
  if (name.starts_with(kNodeUser) && name != wanted) {
    return check::error(fmt::format("{} is for {}, this node is {}", the, name, node_name),
                        fmt::format("set --nodename {}, or a credential for {}",
                                    name.substr(std::string_view{kNodeUser}.size()), wanted));
  }
  if (certificate.not_after <= now) {
    return check::error(fmt::format("{} expired at {}", the, rfc3339(certificate.not_after)),
                        fresh);
  }
  if (certificate.not_before > now) {
    return check::error(fmt::format("{} is not valid before {}, and this machine's clock shows {}",
                                    the, rfc3339(certificate.not_before), rfc3339(now)),
                        "set this machine's clock (timedatectl, chronyc tracking)");
  }
  if (!name.starts_with(kNodeUser)) {
    return check::warning(
        fmt::format("{} is for \"{}\", not for a node: it may have more rights than a compute node "
                    "should",
                    the, name),
        "use one for " + wanted + " with the organization system:nodes");
  }
  std::string valid =
      fmt::format("{} in {}, valid until {}", name, source, rfc3339(certificate.not_after));
  const auto life = certificate.not_after - certificate.not_before;
  return (certificate.not_after - now) * kLastTenth < life ? check::warning(std::move(valid), fresh)
                                                           : check::ok(std::move(valid));
}

Findings credential_findings(const config::Settings& settings, const std::string& node_name,
                             const Clock& clock, CredentialInUse& out) {
  const auto& kubernetes = settings.kubernetes;
  auto access = credentials::ApiAccess::open(settings, clock);
  Findings found;
  const bool has_bootstrap = kubernetes.has_bootstrap();
  if (!access && has_bootstrap && access.error().code == Code::kNotFound) {
    found.push_back(check::info("none yet: slurmlet requests one with the bootstrap token"));
  } else if (!access && access.error().code == Code::kDenied) {
    found.push_back(root_only(access.error()));
  } else {
    const Finding judged = judge(kubernetes, node_name, access, clock.now().wall);
    found.push_back(has_bootstrap ? fixed_by_bootstrap(judged) : judged);
  }
  if (access) {
    for (const auto& file : access->files()) {
      if (file == kubernetes.token_file || holds_secret(file)) {
        warn_if_open(file, found);
      }
    }
    out.access.emplace(std::move(*access));
  }
  return found;
}

Findings bootstrap_findings(const config::Settings& settings, const std::string& node_name,
                            const Clock& clock, CredentialInUse& out) {
  const auto& kubernetes = settings.kubernetes;
  if (!kubernetes.has_bootstrap()) {
    return {};
  }
  const std::string& file = kubernetes.bootstrap_kubeconfig.empty()
                                ? kubernetes.bootstrap_token_file
                                : kubernetes.bootstrap_kubeconfig;
  Findings found;
  const Status read = read_bootstrap(kubernetes, file);
  if (read) {
    found.push_back(check::ok("a token in " + file));
  } else if (read.error().code == Code::kDenied) {
    found.push_back(root_only(read.error()));
  } else if (credentials::bootstrap_need(settings, node_name, clock.now().wall).empty()) {
    found.push_back(check::info(read.error().message + "; not needed: there is a credential"));
  } else {
    found.push_back(check::error(
        read.error().message,
        kubernetes.bootstrap_kubeconfig.empty()
            ? fmt::format("put a bootstrap token ({})", kube::kNewToken) + put_into(file)
            : "put a kubeconfig with a bootstrap token (docs/explanation/security.md)" +
                  put_into(file)));
  }
  warn_if_open(file, found);
  // With kubernetes.caCertHashes the CA is discovered when slurmlet starts.
  if (!out.access && kubernetes.ca_cert_hashes.empty()) {
    if (auto access = credentials::ApiAccess::open(credentials::as_bootstrap(settings), clock)) {
      out = {std::move(*access), true};
    }
  }
  return found;
}

Finding serving_finding(const config::Settings& settings,
                        const std::optional<status::DaemonStatus>& daemon, WallTime now) {
  const std::string& file = settings.endpoint.certificate_file;
  credentials::ServingCertificate serving{settings.endpoint, "localhost", ""};
  if (const Status usable = serving.start(now); !usable) {
    return usable.error().code == Code::kDenied
               ? root_only(usable.error())
               : check::error(usable.error().message, "put the right PEM text there");
  }
  if (file.empty()) {
    return settings.endpoint.server_tls_bootstrap
               ? stored_serving_finding(settings, daemon, now)
               : check::info(
                     "self-signed: metrics-server can scrape this node only without verifying it");
  }
  const std::string end = rfc3339(serving.not_after().value_or(now));
  return serving.not_after() > now
             ? check::ok(file + ", valid until " + end)
             : check::error(file + " expired at " + end, "put a valid one" + put_into(file));
}

}  // namespace slurmlet::cli
