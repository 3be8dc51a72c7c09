#include "credentials/bootstrap.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "credentials/own_credentials.h"
#include "http/proxy_choice.h"
#include "kube/cluster_info.h"
#include "kube/kubeconfig.h"
#include "tls/certificates.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr mode_t kPrivate = 0600;
constexpr Duration kLook = minutes{1};  // for a clock that somebody set

Result<std::string> find_ca(const config::KubernetesSettings& kubernetes,
                            kube::RequestCounter& requests, int abort_fd) {
  auto text = read_file(kubernetes.bootstrap_token_file);
  if (!text) {
    return text.error().with_prefix("bootstrap token");
  }
  const auto token = kube::parse_bootstrap_token(std::string{trim(*text)});
  if (!token) {
    return token.error().with_prefix(kubernetes.bootstrap_token_file);
  }
  auto nobody = TRY(tls::ClientIdentity::make_untrusting());
  http::Endpoint endpoint;
  endpoint.url = kubernetes.server;
  endpoint.proxy = http::proxy_for(kubernetes.server, kubernetes.https_proxy, kubernetes.no_proxy);
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  auto client = TRY(http::make_curl_client(endpoint, nobody, {}));
  client->set_abort_fd(abort_fd);
  std::vector<std::string> pins;
  for (const auto pin : split(kubernetes.ca_cert_hashes, ',')) {
    pins.emplace_back(pin);
  }
  return kube::discover_cluster_ca(*client, *token, pins, {&requests, {}});
}

struct Connection {
  ApiAccess access;
  std::unique_ptr<http::Client> client;
};

// With the bootstrap credential. `ca` is what was discovered before; "" = discover it, if so
// configured.
Result<Connection> connect_to_bootstrap(const config::Settings& settings, std::string& ca,
                                        const Clock& clock, kube::RequestCounter& requests,
                                        int abort_fd) {
  if (!settings.kubernetes.ca_cert_hashes.empty() && ca.empty()) {
    ca = TRY(find_ca(settings.kubernetes, requests, abort_fd));
  }
  auto access = TRY(ApiAccess::open(as_bootstrap(settings, ca), clock));
  auto client = TRY(access.connect());
  client->set_abort_fd(abort_fd);
  return Connection{std::move(access), std::move(client)};
}

// Also the kubeconfig, which somebody may fix meanwhile.
std::vector<std::filesystem::path> watched_files(const config::Settings& settings) {
  auto out = bootstrap_files(settings);
  if (!settings.kubernetes.kubeconfig.empty()) {
    out.emplace_back(settings.kubernetes.kubeconfig);
  }
  return out;
}

}  // namespace

config::Settings as_bootstrap(const config::Settings& settings, const std::string& discovered_ca) {
  config::Settings out = settings;
  auto& kubernetes = out.kubernetes;
  kubernetes.kubeconfig = kubernetes.bootstrap_kubeconfig;
  kubernetes.token_file = kubernetes.bootstrap_token_file;
  if (!discovered_ca.empty()) {
    kubernetes.ca_data = discovered_ca;
  }
  return out;
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

std::string replaced_kubeconfig(const std::string& kubeconfig) { return kubeconfig + ".old"; }

std::string bootstrap_need(const config::Settings& settings, const std::string& node_name,
                           WallTime now) {
  const std::string& path = settings.kubernetes.kubeconfig;
  const auto access = kube::load_kubeconfig(path);
  if (!access) {
    std::error_code ignored;
    return access.error().code == Code::kNotFound && !std::filesystem::exists(path, ignored)
               ? path + " does not exist yet"
               : access.error().message;
  }
  if (!access->pem.certificate) {
    return "";  // a token: nothing to be seen in it
  }
  const auto certificate =
      tls::read_certificate(*access->pem.certificate, access->pem.certificate_name);
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

Bootstrap::Bootstrap(const config::Settings& settings, std::string node_name, const Clock& clock,
                     kube::RequestCounter& requests, int abort_fd)
    : settings_(settings),
      node_name_(std::move(node_name)),
      clock_(clock),
      requests_(requests),
      abort_fd_(abort_fd),
      store_(settings.kubernetes.cert_dir, kClientStoreName),
      backoff_(Delay::kBootstrapRetry, system_random()),
      files_(watched_files(settings)),
      was_of_no_use_(!is_of_use(clock.now().wall)) {}

// What the store holds may have expired, or be another node's.
bool Bootstrap::is_issued(WallTime now) const {
  return held_ && held_->not_after > now && held_->common_name == "system:node:" + node_name_;
}

Bootstrap::Connected::Connected(ApiAccess used, std::unique_ptr<http::Client> made,
                                const Bootstrap& owner, CertificateSyncOptions options,
                                CertificateSync::Issued issued)
    : access(std::move(used)),
      client(std::move(made)),
      api(*client, kube::CallOptions{&owner.requests_, {}}, system_random()),
      sync(api, owner.store_, std::move(options), system_random(), std::move(issued)) {
  sync.set_subject(client_certificate_subject(owner.node_name_));
}

Status Bootstrap::open() {
  auto connection =
      TRY(connect_to_bootstrap(settings_, discovered_ca_, clock_, requests_, abort_fd_));
  auto options = client_certificate_options(settings_, node_name_);
  // The network may come late, and nobody sees this node before.
  options.unanswered = Delay::kBootstrapRetry;
  connected_ = std::make_unique<Connected>(
      std::move(connection.access), std::move(connection.client), *this, std::move(options),
      [this](const tls::StoredCertificate& certificate) { held_ = certificate.summary; });
  return {};
}

// What was there before is kept beside it: it was of no use, but somebody may have written it.
Status Bootstrap::write_kubeconfig() const {
  const auto& path = settings_.kubernetes.kubeconfig;
  const std::string text =
      kube::node_kubeconfig_text(connected_->access.cluster(), node_name_, store_.current_path());
  if (const auto before = read_file(path); before && *before != text) {
    if (const Status kept = write_file_atomic(replaced_kubeconfig(path), *before, kPrivate);
        !kept) {
      return kept;
    }
  }
  return write_file_atomic(path, text, kPrivate);
}

// `by_itself`: it may pass without a person. Returns when to try again.
SteadyTime Bootstrap::failed(const Error& error, const std::string& what, bool by_itself) {
  if (!problem_ || problem_->message != error.message) {
    (by_itself ? log::warning : log::error)(what + ": " + error.message);
  }
  problem_ = error;
  return clock_.now().steady + backoff_.next(error.retry_after);
}

SteadyTime Bootstrap::step(Now now) {
  const bool changed = !files_.changed().empty();
  // Without a change: the clock was set since, so that a certificate has not expired after all.
  if ((changed || was_of_no_use_) && is_of_use(now.wall)) {
    log::info(settings_.kubernetes.kubeconfig + " now contains a valid credential, which is used");
    done_ = true;
    return now.steady;
  }
  if (changed) {
    log::info("the bootstrap credential was replaced; trying it");
    connected_.reset();
    discovered_ca_.clear();
    backoff_.reset();
    next_try_ = {};
  }
  if (!connected_) {
    if (now.steady < next_try_) {
      return next_try_;
    }
    if (const Status opened = open(); !opened) {
      const bool by_signal = opened.error().code == Code::kCancelled;
      next_try_ =
          by_signal ? now.steady : failed(opened.error(), "bootstrap failed, retrying", true);
      return next_try_;
    }
    problem_.reset();
    backoff_.reset();
    next_try_ = {};
  }
  const SteadyTime next = connected_->sync.step(now);
  if (!is_issued(now.wall)) {
    return std::min(next, now.steady + kLook);
  }
  if (now.steady < next_try_) {  // the last try woke us: it made a file
    return next_try_;
  }
  if (const Status written = write_kubeconfig(); !written) {
    next_try_ = failed(written.error(), "the kubeconfig of this node cannot be written", false);
    return next_try_;
  }
  log::info("bootstrap completed; " + settings_.kubernetes.kubeconfig + " written");
  done_ = true;
  return now.steady;
}

std::string Bootstrap::server() const {
  return connected_ ? connected_->access.server() : settings_.kubernetes.server;
}

std::optional<CertificateStatus> Bootstrap::request() const {
  return connected_ ? std::optional{connected_->sync.status()} : std::nullopt;
}

void Bootstrap::wait(SteadyTime until, std::vector<int> fds) {
  fds.push_back(files_.fd());
  std::erase(fds, -1);
  if (connected_) {
    connected_->client->wait(until, fds);
    return;
  }
  std::vector<pollfd> entries;
  for (const int fd : fds) {
    entries.push_back({fd, POLLIN, 0});
  }
  const auto left =
      std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
  ::poll(entries.data(), entries.size(),
         static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000)));
}

Status probe_bootstrap(const config::Settings& settings, int abort_fd, const Clock& clock,
                       kube::RequestCounter& requests) {
  std::string ca;
  const auto connection = TRY(connect_to_bootstrap(settings, ca, clock, requests, abort_fd));
  kube::RestCertificateApi api{*connection.client, {&requests, {}}, system_random()};
  const auto answer = api.get("slurmlet-probe");
  return answer || answer.error().code == Code::kNotFound ? Status{} : Status{answer.error()};
}

Status discard_certificate(const config::Settings& settings) {
  const tls::CertificateStore store{settings.kubernetes.cert_dir, kClientStoreName};
  std::error_code error;
  std::filesystem::remove(store.current_path(), error);
  return error ? Status{Error{Code::kInternal,
                              store.current_path().string() + ": " + error.message()}}
               : Status{};
}

BootstrapPause::BootstrapPause(std::vector<std::filesystem::path> files, Random random)
    : files_(std::move(files)), backoff_(Delay::kBootstrapAgain, std::move(random)) {}

void BootstrapPause::tried(SteadyTime now) { until_ = now + backoff_.next(); }

SteadyTime BootstrapPause::rejected() {
  if (!watch_) {
    watch_.emplace(files_);
  } else if (const bool was_late = !watch_->problem().empty();
             !watch_->changed().empty() && !was_late) {  // after a late reading all have "changed"
    until_ = {};
    backoff_.reset();
  }
  return until_;
}

}  // namespace slurmlet::credentials
