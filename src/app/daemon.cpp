#include "app/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "app/access.h"
#include "app/metrics.h"
#include "app/node_identity.h"
#include "app/slurm_setup.h"
#include "base/log.h"
#include "base/published.h"
#include "base/wakeup.h"
#include "host/shutdown.h"
#include "kube/rest_api.h"
#include "kube/watch.h"
#include "node/desired_node.h"
#include "podapi/health_server.h"
#include "sync/event_sink.h"
#include "sync/facts_sync.h"
#include "sync/lease_sync.h"
#include "sync/node_sync.h"
#include "sync/pod_sync.h"

namespace slurmlet::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What the lease thread and the main thread share.
struct Shared {
  SystemClock clock;
  kube::RequestCounter requests;
  Published<std::string> node_uid;
  Published<sync::LeaseStatus> lease_status;
  Published<Report> report;
};

sync::LeaseOptions lease_options(const config::Settings& settings, const node::NodePolicy& policy,
                                 const std::string& system_uuid) {
  sync::LeaseOptions options;
  options.node_name = policy.node_name;
  // Names the machine too, so that two machines with one node name can tell each other apart.
  options.holder_identity =
      system_uuid.empty() ? policy.node_name : policy.node_name + "/" + system_uuid;
  options.duration = std::chrono::duration_cast<seconds>(settings.kubernetes.lease_duration);
  return options;
}

// The thread that renews the lease, on a connection of its own. Ends on destruction.
class LeaseThread {
 public:
  LeaseThread(std::unique_ptr<http::Client> client, sync::LeaseOptions options, Shared& shared)
      : client_(std::move(client)),
        api_(*client_, {&shared.requests, {}}),
        sync_(api_, std::move(options), system_random(), shared.node_uid, shared.lease_status),
        thread_([this, &shared] { run(shared.clock); }) {}
  ~LeaseThread() {
    stopping_ = true;
    client_->interrupt();
    thread_.join();
  }
  LeaseThread(const LeaseThread&) = delete;
  LeaseThread& operator=(const LeaseThread&) = delete;

  // The Node's uid has changed.
  void wake() { wakeup_.notify(); }

 private:
  void run(const Clock& clock) {
    while (!stopping_) {
      const SteadyTime next = sync_.step(clock.now());
      if (!stopping_ && !client_->wait(next, {wakeup_.fd()}).empty()) {
        wakeup_.clear();
      }
    }
  }

  std::unique_ptr<http::Client> client_;
  kube::RestLeaseApi api_;
  sync::LeaseSync sync_;
  Wakeup wakeup_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct Connections {
  std::unique_ptr<http::Client> main;
  std::unique_ptr<http::Client> lease;
};

Result<Connections> connect(const ApiAccess& access) {
  auto main = access.connect();
  if (!main) {
    return main.error();
  }
  auto lease = access.connect();
  if (!lease) {
    return lease.error();
  }
  return Connections{std::move(*main), std::move(*lease)};
}

// The loops of the main thread and one turn of them.
class MainLoop {
 public:
  MainLoop(const config::Settings& settings, NodeIdentity identity,
           std::unique_ptr<http::Client> client, std::string route, Shared& shared)
      : settings_(settings),
        identity_(std::move(identity)),
        client_(std::move(client)),
        shared_(shared),
        calls_{&shared.requests, {}},
        node_api_(*client_, calls_),
        pod_api_(*client_, calls_),
        event_api_(*client_, calls_),
        node_watch_(kube::watch_own_node(*client_, name(), calls_, system_random())),
        pod_watch_(kube::watch_own_pods(*client_, name(), calls_, system_random())),
        facts_(make_facts()),
        events_(event_api_, name(), system_random()),
        node_(node_api_, *node_watch_, events_, node_options(), system_random(), shared.node_uid,
              [this](const std::string& id) { remember(id); }),
        pods_(pod_api_, *pod_watch_, events_,
              {name(), facts_->facts(now()).slurm_conf.cluster_name, settings.pods.max_backoff},
              system_random()),
        route_(std::move(route)) {}

  SteadyTime step(Now at) {
    SteadyTime next = facts_->step(at);
    refresh_desired(at);
    next = std::min(next, node_.step(at));
    if (node_.registered()) {
      save_identity_once();
      next = std::min(next, pods_.step(now()));
    }
    next = std::min(next, events_.step(now()));
    publish(at);
    return next;
  }

  // Waits for what comes first; true when a signal is pending.
  bool wait(SteadyTime next, int signal_fd) {
    std::vector<int> fds = facts_->wake_fds();
    fds.push_back(signal_fd);
    const auto ready = client_->wait(next, fds);
    return std::find(ready.begin(), ready.end(), signal_fd) != ready.end();
  }

  void abort_calls_on(int fd) { client_->set_abort_fd(fd); }

  // Last words on host shutdown, within `limit`.
  void say_shutting_down(Duration limit) {
    const UniqueFd timer{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)};
    itimerspec when{};
    when.it_value.tv_nsec = std::chrono::nanoseconds{limit}.count() % 1'000'000'000;
    when.it_value.tv_sec = std::chrono::duration_cast<seconds>(limit).count();
    ::timerfd_settime(timer.get(), 0, &when, nullptr);
    client_->set_abort_fd(timer.get());
    shutting_down_ = true;
    refresh_desired(now());
    const Status said = node_.flush(now());
    client_->set_abort_fd(-1);
    if (said) {
      log::info("the host is shutting down; Node " + name() + " says so");
    } else {
      log::warning("the host is shutting down, but the Node could not be told: " +
                   said.error().message);
    }
  }

  std::string system_uuid() const { return facts_->facts(now()).machine.system_uuid; }

 private:
  const std::string& name() const { return identity_.policy.node_name; }
  Now now() const { return shared_.clock.now(); }

  std::unique_ptr<sync::FactsSync> make_facts() {
    sync::FactsOptions options;
    options.paths.state_dir = settings_.state_dir;
    options.machine_interval = settings_.kubernetes.status_report_interval;
    options.not_ready_grace = settings_.node.not_ready_grace;
    auto discover = [this](const std::string& slurmd_option) {
      return discover_slurm(settings_, identity_.hostname, name(), slurmd_option);
    };
    auto poll = std::make_unique<slurm::ControllerPoll>(
        poll_settings(settings_, settings_.slurm.conf), "",
        std::make_unique<slurm::ProcessRunner>(), system_random());
    return std::make_unique<sync::FactsSync>(std::move(options), identity_.metal3,
                                             std::move(discover), std::move(poll),
                                             std::make_unique<slurm::ProcessRunner>());
  }

  sync::NodeSyncOptions node_options() const {
    sync::NodeSyncOptions options;
    options.report_interval = settings_.kubernetes.status_report_interval;
    options.recreate = settings_.node.recreate == "always";
    options.remembered_provider_id = identity_.remembered_provider_id;
    options.cluster = facts_->facts(now()).slurm_conf.cluster_name;
    return options;
  }

  // So that a later boot without metadata is still the same node.
  void save_identity_once() {
    if (!identity_saved_ && identity_.metal3) {
      remember(identity_.remembered_provider_id);
    }
    identity_saved_ = true;
  }

  void remember(const std::string& provider_id) {
    identity_.remembered_provider_id = provider_id;
    identity_saved_ = true;
    if (const Status saved = remember_provider_id(settings_, identity_, provider_id); !saved) {
      log::warning("providerID not saved: " + saved.error().message);
    }
  }

  void refresh_desired(Now at) {
    node::Circumstances circumstances = facts_->circumstances(at);
    circumstances.shutting_down = shutting_down_;
    node::HostFacts facts = facts_->facts(at);
    // The address that reaches the API server is the one the cluster can reach us at.
    prefer_address(facts.machine.ip_addresses, route_);
    prefer_address(facts.machine.ip_addresses, client_->local_address());
    node_.set_desired(node::desired_node(facts, identity_.policy, circumstances, SLURMLET_VERSION),
                      at);
  }

  static void prefer_address(std::vector<std::string>& addresses, const std::string& preferred) {
    const auto found = std::find(addresses.begin(), addresses.end(), preferred);
    if (found != addresses.end()) {
      std::rotate(addresses.begin(), found, found + 1);
    }
  }

  void publish(Now at) {
    Report report;
    const node::HostFacts facts = facts_->facts(at);
    report.node_name = name();
    report.registered = node_.registered();
    report.refusal = node_.refusal().value_or("");
    report.slurm = facts.slurm;
    report.slurmd = facts.slurmd;
    report.slurmctld = facts_->poll_counters();
    report.pods_rejected = pods_.rejected();
    report.pods_finished = pods_.finished();
    report.pods_waiting = pods_.waiting();
    report.node_writes = node_.writes();
    report.events_dropped = events_.dropped();
    shared_.report.set(std::move(report));
  }

  const config::Settings& settings_;
  NodeIdentity identity_;
  std::unique_ptr<http::Client> client_;
  Shared& shared_;
  kube::CallOptions calls_;
  kube::RestNodeApi node_api_;
  kube::RestPodApi pod_api_;
  kube::RestEventApi event_api_;
  std::unique_ptr<kube::Watch<node::ObservedNode>> node_watch_;
  std::unique_ptr<kube::Watch<kube::Pod>> pod_watch_;
  std::unique_ptr<sync::FactsSync> facts_;
  sync::EventSink events_;
  sync::NodeSync node_;
  sync::PodSync pods_;
  std::optional<std::pair<node::HostFacts, node::Circumstances>> seen_;  // what desired is made of
  std::string route_;  // our address towards the API server, before the first connection
  bool identity_saved_ = false;
  bool shutting_down_ = false;
};

// Nothing if it is switched off or its port is taken: a node without it is better than no node.
std::unique_ptr<podapi::HealthServer> serve_health(const config::Settings& settings,
                                                   Shared& shared) {
  if (settings.endpoint.healthz_port == 0) {
    return nullptr;
  }
  podapi::HealthServerOptions options;
  options.port = settings.endpoint.healthz_port;
  const auto duration = std::chrono::duration_cast<seconds>(settings.kubernetes.lease_duration);
  auto server = std::make_unique<podapi::HealthServer>(options, [&shared, duration] {
    const auto report = shared.report.get();
    const auto lease = shared.lease_status.get();
    return make_snapshot(report ? *report : Report{}, lease ? *lease : sync::LeaseStatus{},
                         shared.requests, shared.clock.now(), duration);
  });
  if (const Status started = server->start(); !started) {
    log::warning("no health endpoint: " + started.error().message);
    return nullptr;
  }
  return server;
}

// Few arenas and no hoarding: memory belongs to jobs.
void tune_allocator() {
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, 64 * 1024);
  ::mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}

Outcome run_loop(MainLoop& loop, LeaseThread& lease, Signals& signals, Shared& shared) {
  loop.abort_calls_on(signals.fd());
  std::shared_ptr<const std::string> known_uid;
  bool trimmed = false;
  while (true) {
    const SteadyTime next = loop.step(shared.clock.now());
    if (const auto uid = shared.node_uid.get(); uid != known_uid) {
      known_uid = uid;
      lease.wake();
    } else if (!trimmed && uid) {
      ::malloc_trim(0);  // what start-up needed
      trimmed = true;
    }
    if (!loop.wait(next, signals.fd())) {
      continue;
    }
    while (const auto number = signals.take()) {
      if (*number == SIGHUP) {
        return Outcome::kReload;
      }
      log::info(*number == SIGTERM ? "SIGTERM: stopping" : "SIGINT: stopping");
      if (host::system_is_stopping()) {
        loop.say_shutting_down(milliseconds{1000});
      }
      return Outcome::kStopped;
    }
  }
}

}  // namespace

Result<Outcome> run_daemon(const config::Settings& settings, Signals& signals) {
  tune_allocator();
  Shared shared;
  auto access = ApiAccess::open(settings, shared.clock);
  if (!access) {
    return access.error();
  }
  auto identity = identify(settings, access->node_of_credential());
  if (!identity) {
    return identity.error();
  }
  for (const auto& note : identity->notes) {
    log::info(note);
  }
  if (const auto warning = access->credential_warning(shared.clock.now().wall); !warning.empty()) {
    log::warning(warning);
  }
  auto connections = connect(*access);
  if (!connections) {
    return connections.error();
  }
  log::info("node " + identity->policy.node_name + ", API server " + access->server());
  const node::NodePolicy policy = identity->policy;
  const auto health = serve_health(settings, shared);
  MainLoop loop{settings, std::move(*identity), std::move(connections->main),
                access->route_source(), shared};
  LeaseThread lease{std::move(connections->lease),
                    lease_options(settings, policy, loop.system_uuid()), shared};
  return run_loop(loop, lease, signals, shared);
}

}  // namespace slurmlet::app
