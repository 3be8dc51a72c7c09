#include "daemon/daemon.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/child_limits.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/side_call.h"
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
// With the credential's files: at the start, and on a reload, which a SIGTERM may follow at once.
constexpr Duration kFirstPatience = seconds{10};
constexpr Duration kReloadPatience = seconds{2};
// For "node is shutting down", on a machine where everything stops at once.
constexpr Duration kLastWordPatience = seconds{3};
// With the Lease's file at the end: a busy disk may need seconds; the unit has 20 s.
constexpr Duration kLeavePatience = seconds{5};

}  // namespace

struct Daemon::Lasting {
  explicit Lasting(status::ServiceReport& service) : shared{service, clock} {}
  void begin(const std::string& name) {
    began = true;
    node_name = name;
  }

  // Work that hangs (base/side_call.h) may use it to the end of the process.
  static inline const SystemClock clock{};
  Shared shared;
  bool began = false;     // the life that runs
  std::string node_name;  // of the last one that began
  std::string state_dir;  // of the last one
  UniqueFd lock;          // of the state directory
  LeaseScope lease_of;
  std::unique_ptr<LeaseThread> lease;
  // What these settings led to when it was last read.
  std::optional<std::pair<config::KubernetesSettings, credentials::ApiAccess>> access;
  // So that a reload goes on with what the endpoint shows, and whom it believes.
  std::pair<config::EndpointSettings, std::string> serving_of;  // its settings, the node's name
  std::unique_ptr<credentials::ServingCertificate> serving;
};

namespace {

// One life of the daemon with one configuration: until a signal.
class Life {
 public:
  Life(const config::Settings& settings, Signals& signals, Reload& reload, NodeIdentity identity,
       Daemon::Lasting& lasting)
      : settings_(settings),
        signals_(signals),
        reload_(reload),
        identity_(std::move(identity)),
        lasting_(lasting),
        shared_(lasting.shared),
        bootstrap_pause_(credentials::bootstrap_files(settings), system_random()) {}

  Result<Outcome> run();

 private:
  const std::string& name() const { return identity_.policy.node_name; }
  Result<std::string> bootstrap_need(WallTime now) const;
  Result<std::optional<Outcome>> bootstrap_if_needed();
  Result<std::optional<Outcome>> serve();
  bool has_access() const {
    return lasting_.access && lasting_.access->first == settings_.kubernetes &&
           check_credential(identity_, lasting_.access->second.node_of_credential());
  }
  // With the credential's files.
  Duration patience() const { return lasting_.access ? kReloadPatience : kFirstPatience; }
  Result<credentials::ApiAccess> open_access();
  Status start_lease(const credentials::ApiAccess& access);
  credentials::ServingCertificate& serving_certificate(const std::string& ca);
  void end_lease();
  std::optional<Outcome> run_loop(MainLoop& loop);

  const config::Settings& settings_;
  Signals& signals_;
  Reload& reload_;
  NodeIdentity identity_;
  Daemon::Lasting& lasting_;
  Shared& shared_;
  credentials::BootstrapPause bootstrap_pause_;
  bool credential_lost_ = false;  // the API server has rejected it
  std::string refused_;           // why the next bootstrap is needed, whatever the files say
};

// Reads the credential's files.
Result<std::string> Life::bootstrap_need(WallTime now) const {
  SideCall<Result<std::string>> looking;
  return in_time(
      looking,
      [settings = settings_, name = name(), now] {
        return Result{credentials::bootstrap_need(settings, name, now)};
      },
      patience());
}

Result<std::optional<Outcome>> Life::bootstrap_if_needed() {
  if (!settings_.kubernetes.has_bootstrap() || has_access()) {
    return std::optional<Outcome>{};
  }
  const std::string refused = std::exchange(refused_, "");
  // Whether a certificate has expired is first for the API server to say: our clock may be wrong.
  std::string need = TRY(bootstrap_need(
      std::exchange(credential_lost_, false) ? shared_.clock.now().wall : WallTime::min()));
  if (need.empty()) {
    need = refused;
  }
  if (need.empty()) {
    return std::optional<Outcome>{};
  }
  // Its file may be half-written, its name mistyped, the token of no use: no reason to give up one
  // that works. And until somebody approves another, nothing would keep the Node up to date.
  if (lasting_.access) {
    return Error{Code::kInvalid, "the node's own credential: " + need +
                                     "; restart slurmlet to request another one"};
  }
  log::info("bootstrap of node " + name() + ": " + need);
  lasting_.begin(name());
  return run_bootstrap(settings_, name(), signals_, reload_, shared_);
}

Result<Outcome> Life::run() {
  while (true) {
    if (const auto ended = TRY(bootstrap_if_needed())) {
      return *ended;
    }
    const auto ending = TRY(serve());
    if (ending) {
      return *ending;
    }
    end_lease();
    lasting_.access.reset();
    credential_lost_ = true;
    // One that expired asks for another by itself; one that looks good must go first.
    const std::string need = TRY(bootstrap_need(shared_.clock.now().wall));
    const Status accepted = need.empty()
                                ? credentials::probe_bootstrap(settings_, signals_.fd(),
                                                               shared_.clock, shared_.requests)
                                : Status{};
    if (!accepted && accepted.error().code == Code::kCancelled) {
      continue;
    }
    bootstrap_pause_.tried(shared_.clock.now().steady);
    if (!accepted) {
      log::warning("the bootstrap token was rejected too (" + accepted.error().message +
                   "): this node keeps its credential and retries");
      continue;
    }
    if (need.empty()) {
      TRY(credentials::discard_certificate(settings_));
      // Where the credential is not in the store, its kubeconfig goes on looking good.
      refused_ = "the API server rejects the credential in " + settings_.kubernetes.kubeconfig;
    }
  }
}

// With the same settings a reload goes on with what it has: OwnCredentials reads the files again,
// and somebody may be writing them.
Result<credentials::ApiAccess> Life::open_access() {
  if (has_access()) {
    return lasting_.access->second;
  }
  SideCall<Result<credentials::ApiAccess>> opening;
  return in_time(
      opening,
      [settings = settings_, clock = &lasting_.clock] {
        return credentials::ApiAccess::open(settings, *clock);
      },
      patience());
}

// Before all else of this life. The connection is the thread's own: the lease must never wait for
// another call.
Status Life::start_lease(const credentials::ApiAccess& access) {
  auto client = TRY(access.connect());
  sync::LeaseOptions options;
  options.node_name = name();
  options.holder_identity = holder_identity_of(identity_);
  options.duration = std::chrono::duration_cast<seconds>(settings_.kubernetes.lease_duration);
  LeaseScope lease_of{settings_.state_dir, access.server(), name(), options.holder_identity};
  shared_.is_reload = lasting_.lease && lease_of == lasting_.lease_of;
  if (shared_.is_reload) {
    options.inherited = lasting_.lease->stop();
  } else {
    end_lease();
    if (auto left = take_lease(lease_of, shared_.clock.now().wall)) {
      shared_.lease.set_uid(left->lease.owner_node_uid);
      shared_.watch_from = std::move(left->watch_from);
      options.inherited = std::move(left->lease);
    }
    lasting_.lease_of = std::move(lease_of);
  }
  lasting_.lease.reset();  // one thread at a time
  lasting_.lease = std::make_unique<LeaseThread>(std::move(client), std::move(options), shared_);
  return {};
}

// Until the Node is found to be ours again.
void Life::end_lease() {
  lasting_.lease.reset();
  shared_.lease.forget();
  shared_.watch_from.clear();
}

credentials::ServingCertificate& Life::serving_certificate(const std::string& ca) {
  const std::pair of{settings_.endpoint, name()};
  if (lasting_.serving && lasting_.serving_of == of) {
    if (const Status set = lasting_.serving->set_cluster_ca(ca); !set) {
      log::error("the cluster's CA at the kubelet endpoint: " + set.error().message);
    }
    return *lasting_.serving;
  }
  lasting_.serving_of = of;
  lasting_.serving =
      std::make_unique<credentials::ServingCertificate>(settings_.endpoint, name(), ca);
  if (settings_.endpoint.port != 0) {
    if (const Status made = lasting_.serving->start(shared_.clock.now().wall); !made) {
      log::error(
          "the kubelet endpoint's certificate: " + made.error().message +
          (lasting_.serving->identity() ? "; a self-signed one is used until it is replaced" : ""));
    }
  }
  return *lasting_.serving;
}

Result<std::optional<Outcome>> Life::serve() {
  auto access = TRY(open_access());
  TRY(check_credential(identity_, access.node_of_credential()));
  if (const auto warning = access.credential_warning(shared_.clock.now().wall); !warning.empty()) {
    log::warning(warning);
  }
  TRY(start_lease(access));
  lasting_.access.emplace(settings_.kubernetes, access);
  auto client = access.connect();
  auto reviews = access.connect();  // the Node must not wait for an unauthenticated client
  if (!client || !reviews) {
    return (client ? reviews : client).error();
  }
  if (!shared_.is_reload) {
    shared_.report.set({});
  }
  log::info("node " + name() + ", API server " + access.server());

  credentials::ServingCertificate& serving = serving_certificate(access.ca_pem());
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
  // Not later: an API server that is away, or a resolver that is slow, must hold up no boot.
  shared_.service.ready(shared_.clock.now());
  lasting_.begin(name());
  MainLoop loop{settings_, std::move(identity), access, serving, std::move(*client), shared_};
  const auto ended = run_loop(loop);
  shared_.watch_from = loop.watch_position();
  shared_.former_site = loop.site();
  return ended;
}

// Nothing when the credential is lost.
std::optional<Outcome> Life::run_loop(MainLoop& loop) {
  loop.abort_calls_on(signals_.fd());
  std::optional<SteadyTime> release_at;  // what only starting needed
  while (true) {
    shared_.reload_waits = reload_.waits();
    SteadyTime next = std::min(loop.step(), reload_.due(shared_.clock.now().steady));
    const auto report = shared_.report.get();
    if (report->registered && !release_at) {
      release_at = shared_.clock.now().steady + kStartIsOver;
    } else if (release_at && shared_.clock.now().steady >= *release_at) {
      release_startup_memory();
      release_at = kNever;
    }
    next = std::min(next, release_at.value_or(kNever));
    if (!loop.needs_bootstrap()) {
      bootstrap_pause_.accepted();
    } else {
      const SteadyTime due = bootstrap_pause_.refused();
      if (shared_.clock.now().steady >= due) {
        return std::nullopt;
      }
      next = std::min(next, due);
    }
    loop.wait(next, {{signals_.fd(), "a signal"},
                     {reload_.fd(), "the new configuration"},
                     {bootstrap_pause_.fd(), "the files of the bootstrap credential"}});
    if (const auto ended = reload_.outcome(signals_, shared_.clock.now())) {
      const bool host_stops = ended == Outcome::kStopped && host::system_is_stopping();
      loop.send_last(host_stops, host_stops ? kLastWordPatience : seconds{1});
      return ended;
    }
  }
}

// What the next start is to find.
void leave(Daemon::Lasting& lasting) {
  lasting.shared.saver.flush(kLeavePatience);
  const auto lease = lasting.lease ? lasting.lease->stop() : std::nullopt;
  if (!lease) {
    return;
  }
  SideCall<Status> leaving;  // its directory may hang
  const Status left = in_time(
      leaving,
      [of = lasting.lease_of, left = LeftLease{*lease, lasting.shared.watch_from}] {
        return leave_lease(of, left);
      },
      kLeavePatience);
  if (!left) {
    log::warning("the next start will not know when the Lease is due: " + left.error().message);
  }
}

}  // namespace

Daemon::Daemon(Signals& signals, Reload& reload, status::ServiceReport& service)
    : signals_(signals), reload_(reload), lasting_(std::make_unique<Lasting>(service)) {}

Daemon::~Daemon() = default;

bool Daemon::began() const { return lasting_->began; }

Result<Outcome> Daemon::run(const config::Settings& settings) {
  lasting_->began = false;
  protect_own_memory();
  if (std::exchange(lasting_->state_dir, settings.state_dir) != settings.state_dir) {
    lasting_->shared.saver = {};  // the other directory may hang
  }
  // Kept over a reload: to open the same file again and close it would free the lock.
  if (!is_lock_of(lasting_->lock, settings.state_dir)) {
    lasting_->lock = TRY(lock_state_directory(settings.state_dir));
    if (!lasting_->lock) {
      log::warning("stateDir " + settings.state_dir +
                   " cannot be locked: a second slurmlet that uses it will not be noticed");
    }
  }
  auto identity = TRY(identify(settings, StateUse::kOwn, lasting_->node_name));
  for (const auto& note : identity.notes) {
    log::info(note.text);
  }
  const auto outcome = Life{settings, signals_, reload_, std::move(identity), *lasting_}.run();
  if (outcome && *outcome == Outcome::kStopped) {
    leave(*lasting_);
  }
  return outcome;
}

}  // namespace slurmlet::daemon
