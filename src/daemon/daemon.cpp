#include "daemon/daemon.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/child_limits.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "credentials/access.h"
#include "credentials/bootstrap.h"
#include "credentials/bootstrap_pause.h"
#include "credentials/serving_certificate.h"
#include "daemon/bootstrap_loop.h"
#include "daemon/cpu_pin.h"
#include "daemon/endpoint_thread.h"
#include "daemon/lease_thread.h"
#include "daemon/main_loop.h"
#include "daemon/node_identity.h"
#include "daemon/shared.h"
#include "daemon/state_lock.h"
#include "host/shutdown.h"
#include "status/daemon_status.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One for each thread: the lease must never wait for another call, nor the Node for an
// unauthenticated client.
struct Connections {
  std::unique_ptr<http::Client> main;
  std::unique_ptr<http::Client> lease;
  std::unique_ptr<http::Client> reviews;
};

Result<Connections> connect(const credentials::ApiAccess& access) {
  Connections out;
  for (auto* client : {&out.main, &out.lease, &out.reviews}) {
    auto connected = access.connect();
    if (!connected) {
      return connected.error();
    }
    *client = std::move(*connected);
  }
  return out;
}

sync::LeaseOptions lease_options(const config::Settings& settings, const std::string& node_name,
                                 const std::string& holder_identity) {
  sync::LeaseOptions options;
  options.node_name = node_name;
  options.holder_identity = holder_identity;
  options.duration = std::chrono::duration_cast<seconds>(settings.kubernetes.lease_duration);
  return options;
}

// One life of the daemon with one configuration: until a signal, or until the credential is lost.
class Daemon {
 public:
  Daemon(const config::Settings& settings, Signals& signals, NodeIdentity identity, CpuPin& pin,
         status::ServiceReport& service)
      : settings_(settings),
        signals_(signals),
        identity_(std::move(identity)),
        pin_(pin),
        shared_{service, clock_},
        bootstrap_pause_(credentials::bootstrap_files(settings), system_random()) {}

  Result<Outcome> run();

 private:
  const std::string& name() const { return identity_.policy.node_name; }
  std::optional<Outcome> bootstrap_if_needed();
  Result<std::optional<Outcome>> serve();
  std::optional<Outcome> run_loop(MainLoop& loop, LeaseThread& lease);

  const config::Settings& settings_;
  Signals& signals_;
  NodeIdentity identity_;
  CpuPin& pin_;
  SystemClock clock_;
  Shared shared_;
  credentials::BootstrapPause bootstrap_pause_;
  bool credential_lost_ = false;  // the API server has rejected it
  std::string refused_;           // why the next bootstrap is needed, whatever the files say
};

std::optional<Outcome> Daemon::bootstrap_if_needed() {
  if (!credentials::has_bootstrap(settings_)) {
    return std::nullopt;
  }
  const std::string refused = std::exchange(refused_, "");
  // Whether a certificate has expired is first for the API server to say: our clock may be wrong.
  std::string need = credentials::bootstrap_need(
      settings_, name(),
      std::exchange(credential_lost_, false) ? shared_.clock.now().wall : WallTime::min());
  if (need.empty()) {
    need = refused;
  }
  if (need.empty()) {
    return std::nullopt;
  }
  log::info("bootstrap of node " + name() + ": " + need);
  return run_bootstrap(settings_, name(), signals_, shared_.clock, shared_.requests,
                       shared_.service, shared_.turns.main);
}

Result<Outcome> Daemon::run() {
  while (true) {
    if (const auto ended = bootstrap_if_needed()) {
      return *ended;
    }
    const auto ending = serve();
    if (!ending) {
      return ending.error();
    }
    if (*ending) {
      return **ending;
    }
    credential_lost_ = true;
    bootstrap_pause_.tried(shared_.clock.now().steady);
    // One that expired asks for another by itself; one that looks good must go first.
    if (credentials::bootstrap_need(settings_, name(), shared_.clock.now().wall).empty()) {
      if (const Status accepted = credentials::probe_bootstrap(settings_, signals_.fd(),
                                                               shared_.clock, shared_.requests);
          !accepted) {
        log::warning("the bootstrap token was rejected too (" + accepted.error().message +
                     "): this node keeps its credential and retries");
        continue;
      }
      if (const Status discarded = credentials::discard_certificate(settings_); !discarded) {
        return discarded.error();
      }
      // Where the credential is not in the store, its kubeconfig goes on looking good.
      refused_ = "the API server rejects the credential in " + settings_.kubernetes.kubeconfig;
    }
  }
}

Result<std::optional<Outcome>> Daemon::serve() {
  auto access = credentials::ApiAccess::open(settings_, shared_.clock);
  if (!access) {
    return access.error();
  }
  if (const Status fits = check_credential(identity_, access->node_of_credential()); !fits) {
    return fits.error();
  }
  if (const auto warning = access->credential_warning(shared_.clock.now().wall); !warning.empty()) {
    log::warning(warning);
  }
  auto connections = connect(*access);
  if (!connections) {
    return connections.error();
  }
  log::info("node " + name() + ", API server " + access->server());

  credentials::ServingCertificate serving{settings_.endpoint, name(), access->ca_pem()};
  if (settings_.endpoint.port != 0) {
    if (const Status made = serving.start(shared_.clock.now().wall); !made) {
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
  EndpointThread endpoint{settings_, name(), std::move(connections->reviews), serving, shared_};
  endpoint.start();
  NodeIdentity identity = identity_;
  identity.policy.kubelet_port = endpoint.kubelet_port();
  // Not later: an API server that is away, or a resolver that is slow, must hold up no boot.
  shared_.service.ready(shared_.clock.now());
  MainLoop loop{settings_, std::move(identity),          *access,
                serving,   std::move(connections->main), shared_};
  LeaseThread lease{std::move(connections->lease),
                    lease_options(settings_, name(), loop.holder_identity()), shared_};
  return run_loop(loop, lease);
}

// Nothing when the credential is lost.
std::optional<Outcome> Daemon::run_loop(MainLoop& loop, LeaseThread& lease) {
  loop.abort_calls_on(signals_.fd());
  std::shared_ptr<const std::string> known_uid;
  bool trimmed = false;
  while (true) {
    SteadyTime next = loop.step();
    const auto report = shared_.report.get();
    pin_.follow(report->slurmd, report->slurm_conf);
    if (const auto uid = shared_.lease.node_uid.get(); uid != known_uid) {
      known_uid = uid;
      lease.wake();
    } else if (!trimmed && uid) {
      release_startup_memory();
      trimmed = true;
    }
    if (!loop.needs_bootstrap()) {
      bootstrap_pause_.accepted();
    } else {
      const SteadyTime due = bootstrap_pause_.refused();
      if (shared_.clock.now().steady >= due) {
        return std::nullopt;
      }
      next = std::min(next, due);
    }
    if (loop.wait(next, signals_.fd(), bootstrap_pause_.fd())) {
      if (const auto ended = signals_.take_outcome(shared_.service, shared_.clock.now())) {
        if (ended == Outcome::kStopped && host::system_is_stopping()) {
          loop.say_shutting_down(milliseconds{1000});
        }
        return ended;
      }
    }
  }
}

}  // namespace

Result<Outcome> run_daemon(const config::Settings& settings, Signals& signals,
                           status::ServiceReport& service) {
  tune_allocator();
  protect_own_memory();
  CpuPin pin{settings.cpu_affinity};
  if (const Status pinned = pin.start(); !pinned) {
    return pinned.error();
  }
  status::process_start();
  const auto lock = lock_state_directory(settings.state_dir);
  if (!lock) {
    return lock.error();
  }
  auto identity = identify(settings);
  if (!identity) {
    return identity.error();
  }
  for (const auto& note : identity->notes) {
    log::info(note);
  }
  return Daemon{settings, signals, std::move(*identity), pin, service}.run();
}

}  // namespace slurmlet::daemon
