#include "credentials/own_credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/rfc3339.h"
#include "credentials/bootstrap.h"

namespace slurmlet::credentials {
namespace {

// So many rejections in a row are no accident of a server that just starts.
constexpr std::uint64_t kRefusalsThatCount = 3;

tls::CertificateStore client_store(const config::Settings& settings) {
  return {settings.kubernetes.cert_dir, kClientStoreName};
}

CertificateSyncOptions certificate_options(const config::Settings& settings,
                                           const std::string& node_name, const char* what,
                                           const char* signer, const char* usage) {
  return {.what = what,
          .signer_name = signer,
          .usages = {"digital signature", usage},
          .node_name = node_name,
          .lifetime =
              std::chrono::floor<std::chrono::seconds>(settings.kubernetes.certificate_duration)};
}

}  // namespace

CertificateSyncOptions client_certificate_options(const config::Settings& settings,
                                                  const std::string& node_name) {
  return certificate_options(settings, node_name, "client certificate", kube::kClientSigner,
                             "client auth");
}

tls::CertificateSubject client_certificate_subject(const std::string& node_name) {
  return {"system:node:" + node_name, {"system:nodes"}, {}, {}};
}

OwnCredentials::OwnCredentials(const config::Settings& settings, ApiAccess& access,
                               ServingCertificate& serving, const std::string& node_name,
                               http::Client& client, kube::CallOptions calls)
    : settings_(settings),
      access_(access),
      serving_(serving),
      node_name_(node_name),
      calls_(std::move(calls)),
      api_(client, calls_, system_random()),
      rejection_{delay(Delay::kCredentialRejected, system_random())} {
  if (settings_.kubernetes.rotate_certificates && is_own_certificate()) {
    client_sync_.emplace(api_, client_store(settings),
                         client_certificate_options(settings, node_name), system_random(),
                         [](const tls::StoredCertificate&) {});  // its file is watched
    client_sync_->set_subject(client_certificate_subject(node_name));
  }
  const bool serves = settings_.endpoint.port != 0 && settings_.endpoint.server_tls_bootstrap;
  if (serves && !serving_.is_given()) {
    serving_sync_.emplace(
        api_, tls::CertificateStore{settings.kubernetes.cert_dir, kServingStoreName},
        certificate_options(settings, node_name, "serving certificate", kube::kServingSigner,
                            "server auth"),
        system_random(), [this](const tls::StoredCertificate& issued) {
          if (const Status taken = serving_.use(issued); !taken) {
            log::error("the serving certificate cannot be used: " + taken.error().message);
          }
        });
  }
  watch_files();
}

// Whether the kubeconfig shows the certificate that the bootstrap put into certDir.
bool OwnCredentials::is_own_certificate() const {
  const auto files = access_.files();
  return std::find(files.begin(), files.end(), client_store(settings_).current_path()) !=
         files.end();
}

void OwnCredentials::watch_files() {
  using Use = CredentialFiles::Entry::Use;
  watched_ = access_.files();
  std::vector<CredentialFiles::Entry> entries;
  entries.push_back({watched_,
                     [this, access = access_, node = node_name_]() -> Result<Use> {
                       return Use{[this, fresh = TRY(access.read_again(node))] {
                         access_.use(fresh);
                         replaced_ = is_started_;
                         return serving_.set_cluster_ca(access_.ca_pem());
                       }};
                     },
                     "the credential of this node"});
  if (auto files = serving_.files(); !files.empty()) {
    entries.push_back({std::move(files),
                       [this, settings = settings_.endpoint]() -> Result<Use> {
                         return Use{[this, fresh = ServingCertificate::read(settings)] {
                           return serving_.use(fresh);
                         }};
                       },
                       "the certificate of the kubelet endpoint"});
  }
  past_failures_ += files_ ? files_->failures() : 0;
  files_ = std::make_unique<CredentialFiles>(std::move(entries));
}

SteadyTime OwnCredentials::step(Now now) {
  SteadyTime next = files_->step(now);
  is_started_ = true;
  if (access_.files() != watched_) {
    watch_files();  // the new kubeconfig names other files
    next = std::min(next, files_->step(now));
  }
  next = std::min(next, notice_loss(now));
  if (client_sync_) {
    next = std::min(next, client_sync_->step(now));
  }
  if (serving_sync_) {
    next = std::min(next, serving_sync_->step(now));
  }
  return next;
}

void OwnCredentials::set_addresses(const std::vector<node::Address>& addresses) {
  if (!serving_sync_ || addresses == addresses_) {
    return;
  }
  addresses_ = addresses;
  tls::CertificateSubject subject = client_certificate_subject(node_name_);
  for (const auto& address : addresses) {
    auto& names = address.type.ends_with("IP") ? subject.ip_addresses : subject.dns_names;
    names.push_back(address.address);
  }
  // As the kubelet: a certificate without an address would have to be replaced at once.
  if (!subject.ip_addresses.empty()) {
    serving_sync_->set_subject(std::move(subject));
  }
}

bool OwnCredentials::is_expired(WallTime now) const {
  const auto certificate = access_.client_certificate();
  return certificate && certificate->not_after <= now;
}

// Why the API server no longer takes our credential; nothing while it does. Our clock may be wrong,
// so what it says of the certificate is an explanation and no reason.
std::optional<std::string> OwnCredentials::loss(WallTime now) const {
  if (calls_.counter->unauthorized_in_a_row() < kRefusalsThatCount) {
    return std::nullopt;
  }
  return "the API server rejects this node's credential (401 Unauthorized)" +
         (is_expired(now) ? "; the client certificate expired at " +
                                rfc3339(access_.client_certificate()->not_after)
                          : "");
}

// A clock that is wrong is worth a word; with a certificate that is, the API server will say so.
void OwnCredentials::notice_expiry(WallTime now) {
  const bool expired = is_expired(now);
  if (expired && !rejection_.reported_expiry) {
    log::warning("by this machine's clock the client certificate expired at " +
                 rfc3339(access_.client_certificate()->not_after) +
                 "; it is used until the API server rejects it");
  }
  rejection_.reported_expiry = expired;
}

bool OwnCredentials::needs_bootstrap(Now now) const {
  return rejection_.since && settings_.kubernetes.has_bootstrap() &&
         (is_expired(now.wall) || now.steady - *rejection_.since >= rejection_.patience);
}

// Says once what to do; with a bootstrap the daemon does it itself. Returns the next wake-up.
SteadyTime OwnCredentials::notice_loss(Now now) {
  notice_expiry(now.wall);
  const auto problem = loss(now.wall);
  if (!problem) {
    if (rejection_.since) {
      log::info("the API server accepts this node's credential again");
    }
    rejection_.since.reset();
    return kNever;
  }
  if (rejection_.since) {
    const bool waits = settings_.kubernetes.has_bootstrap() && !needs_bootstrap(now);
    return waits ? *rejection_.since + rejection_.patience : kNever;
  }
  rejection_.since = now.steady;
  if (settings_.kubernetes.has_bootstrap()) {
    log::warning(*problem + ": requesting another one with the bootstrap token");
    return *rejection_.since + rejection_.patience;
  }
  log::error(
      fmt::format("{}: put a fresh credential for system:node:{} into {} (it is reloaded without a "
                  "restart), or set kubernetes.bootstrapKubeconfig",
                  *problem, node_name_, access_.credential_file()));
  return kNever;
}

CertificateReport OwnCredentials::report(WallTime now) const {
  CertificateReport out;
  if (const auto certificate = access_.client_certificate()) {
    out.client_not_after = certificate->not_after;
  }
  if (client_sync_) {
    out.client_requests = client_sync_->status();
  }
  out.serving_not_after = serving_.not_after();
  if (serving_sync_) {
    out.serving_requests = serving_sync_->status();
  }
  out.serving_self_signed = serving_.is_self_signed();
  out.client_problem = loss(now).value_or("");
  out.reload_failures = past_failures_ + files_->failures();
  return out;
}

}  // namespace slurmlet::credentials
