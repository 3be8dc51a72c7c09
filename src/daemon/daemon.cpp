#include "daemon/daemon.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/child_limits.h"
#include "base/detached_task.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/unique_fd.h"
#include "credentials/access.h"
#include "credentials/bootstrap.h"
#include "credentials/serving_certificate.h"
#include "daemon/bootstrap_loop.h"
#include "daemon/endpoint_thread.h"
#include "daemon/lease_thread.h"
#include "daemon/main_loop.h"
#include "daemon/node_identity.h"
#include "daemon/shared.h"
#include "daemon/state_dir.h"
#include "host/shutdown.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;

// Registered for so long, what only starting needed is given back. The first certificate has come
// by then, or waits for its approval.
constexpr Duration kStartIsOver = seconds{15};
// With the credential's files at the start.
constexpr Duration kCredentialPatience = seconds{10};
// For "node is shutting down", on a machine where everything stops at once.
constexpr Duration kLastWordPatience = seconds{3};
// With the state directory at the end: a busy disk may need seconds; the unit has 20 s.
constexpr Duration kSavePatience = seconds{5};

// Work that hangs (base/detached_task.h) may use it to the end of the process.
const SystemClock kClock;

enum class Ended { kStopped, kCredentialLost };

class Daemon {
 public:
  Daemon(const config::Settings& settings, Signals& signals, status::ServiceReport& service,
         NodeIdentity identity)
      : settings_(settings),
        signals_(signals),
        identity_(std::move(identity)),
        shared_{service, kClock},
        bootstrap_pause_(credentials::bootstrap_files(settings), system_random()) {}

  Status run();

 private:
  const std::string& name() const { return identity_.policy.node_name; }
  Result<std::string> bootstrap_need(WallTime now) const;
  Result<bool> get_credential();
  Status after_lost_credential();
  Result<credentials::ApiAccess> open_access() const;
  Status start_lease(const credentials::ApiAccess& access);
  Result<Ended> serve();
  Ended run_loop(MainLoop& loop);

  const config::Settings& settings_;
  Signals& signals_;
  NodeIdentity identity_;
  Shared shared_;
  credentials::BootstrapPause bootstrap_pause_;
  bool credential_lost_ = false;  // the API server has rejected it
  std::string bootstrap_reason_;  // why to bootstrap again, whatever the files say
  std::unique_ptr<LeaseThread> lease_;
};

// Reads the credential's files.
Result<std::string> Daemon::bootstrap_need(WallTime now) const {
  DetachedTask<Result<std::string>> task;
  return in_time(
      task,
      [settings = settings_, name = name(), now] {
        return Result{credentials::bootstrap_need(settings, name, now)};
      },
      kCredentialPatience);
}

// Bootstraps if there is none yet. False when a signal ended the wait.
Result<bool> Daemon::get_credential() {
  if (!settings_.kubernetes.has_bootstrap()) {
    return true;
  }
  const std::string useless = std::exchange(bootstrap_reason_, "");
  // The API server decides whether a certificate has expired: our clock may err.
  std::string need = TRY(
      bootstrap_need(std::exchange(credential_lost_, false) ? kClock.now().wall : WallTime::min()));
  if (need.empty()) {
    need = useless;
  }
  if (need.empty()) {
    return true;
  }
  log::info("bootstrap of node " + name() + ": " + need);
  return run_bootstrap(settings_, name(), signals_, shared_);
}

// Drops the credential if the bootstrap token may get another.
Status Daemon::after_lost_credential() {
  credential_lost_ = true;
  // An expired one is replaced anyway; one that looks valid must go first.
  const std::string need = TRY(bootstrap_need(kClock.now().wall));
  const Status accepted = need.empty() ? credentials::probe_bootstrap(settings_, signals_.fd(),
                                                                      kClock, shared_.requests)
                                       : Status{};
  if (!accepted && accepted.error().code == Code::kCancelled) {
    return {};
  }
  bootstrap_pause_.tried(kClock.now().steady);
  if (!accepted) {
    log::warning("the bootstrap token was rejected too (" + accepted.error().message +
                 "): this node keeps its credential and retries");
    return {};
  }
  if (need.empty()) {
    TRY(credentials::discard_certificate(settings_));
    // A credential outside the store still looks valid by its kubeconfig.
    bootstrap_reason_ =
        "the API server rejects the credential in " + settings_.kubernetes.kubeconfig;
  }
  return {};
}

Status Daemon::run() {
  while (TRY(get_credential())) {
    const Ended ended = TRY(serve());
    if (ended == Ended::kStopped) {
      break;
    }
    lease_.reset();
    shared_.lease.forget();
    TRY(after_lost_credential());
  }
  shared_.saver.flush(kSavePatience);
  return {};
}

Result<credentials::ApiAccess> Daemon::open_access() const {
  DetachedTask<Result<credentials::ApiAccess>> opening;
  return in_time(
      opening, [settings = settings_] { return credentials::ApiAccess::open(settings, kClock); },
      kCredentialPatience);
}

// Before all else. The connection is the thread's own: the lease must never wait for another call.
Status Daemon::start_lease(const credentials::ApiAccess& access) {
  auto client = TRY(access.connect());
  sync::LeaseOptions options;
  options.node_name = name();
  options.holder_identity = holder_identity_of(identity_);
  options.duration = std::chrono::duration_cast<seconds>(settings_.kubernetes.lease_duration);
  lease_ = std::make_unique<LeaseThread>(std::move(client), std::move(options), shared_);
  return {};
}

Result<Ended> Daemon::serve() {
  auto access = TRY(open_access());
  TRY(check_credential(identity_, access.node_of_credential()));
  if (const auto warning = access.credential_warning(); !warning.empty()) {
    log::warning(warning);
  }
  TRY(start_lease(access));
  auto client = access.connect();
  auto reviews = access.connect();  // the Node must not wait for an unauthenticated client
  if (!client || !reviews) {
    return (client ? reviews : client).error();
  }
  shared_.report.set({});
  log::info("node " + name() + ", API server " + access.server());

  credentials::ServingCertificate serving{settings_.endpoint, name(), access.ca_pem()};
  if (settings_.endpoint.port != 0) {
    if (const Status made = serving.start(kClock.now().wall); !made) {
      log::error("the kubelet endpoint's certificate: " + made.error().message +
                 (serving.identity() ? "; a self-signed one is used until it is replaced" : ""));
    }
  }
  if (const auto shown = serving.identity(); shown && shown->certificate().is_ca) {
    log::warning(
        settings_.endpoint.certificate_file +
        " is a CA certificate, so this node holds a CA key and could sign certificates for anyone: "
        "leave endpoint.certificateFile and endpoint.keyFile out, and remove that key");
  }
  EndpointThread endpoint{settings_, name(), std::move(*reviews), serving, shared_};
  endpoint.start();
  NodeIdentity identity = identity_;
  identity.policy.kubelet_port = endpoint.kubelet_port();
  // Not later: a slow resolver or an API server that is down must not delay boot.
  shared_.service.ready(kClock.now());
  MainLoop loop{settings_, std::move(identity), access, serving, std::move(*client), shared_};
  return run_loop(loop);
}

Ended Daemon::run_loop(MainLoop& loop) {
  loop.abort_calls_on(signals_.fd());
  std::optional<SteadyTime> release_at;  // what only starting needed
  while (true) {
    SteadyTime next = loop.step();
    const auto report = shared_.report.get();
    if (report->registered && !release_at) {
      release_at = kClock.now().steady + kStartIsOver;
    } else if (release_at && kClock.now().steady >= *release_at) {
      release_startup_memory();
      release_at = kNever;
    }
    next = std::min(next, release_at.value_or(kNever));
    if (!loop.needs_bootstrap()) {
      bootstrap_pause_.accepted();
    } else {
      const SteadyTime due = bootstrap_pause_.rejected();
      if (kClock.now().steady >= due) {
        return Ended::kCredentialLost;
      }
      next = std::min(next, due);
    }
    loop.wait(next, {signals_.fd(), bootstrap_pause_.fd()});
    if (must_stop(signals_, shared_.service)) {
      const bool host_stops = host::system_is_stopping();
      loop.send_last(host_stops, host_stops ? kLastWordPatience : seconds{1});
      return Ended::kStopped;
    }
  }
}

}  // namespace

Status run_daemon(const config::Settings& settings, Signals& signals,
                  status::ServiceReport& service) {
  protect_own_memory();
  const UniqueFd lock = TRY(lock_state_directory(settings.state_dir));
  if (!lock) {
    log::warning("stateDir " + settings.state_dir +
                 " cannot be locked: a second slurmlet that uses it will not be noticed");
  }
  auto identity = TRY(identify(settings));
  for (const auto& note : identity.notes) {
    log::info(note.text);
  }
  return Daemon{settings, signals, service, std::move(identity)}.run();
}

}  // namespace slurmlet::daemon
