#include "daemon/main_loop.h"

#include <sys/timerfd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"
#include "config/sources.h"
#include "daemon/slurm_setup.h"
#include "daemon/slurm_source.h"
#include "node/vocabulary.h"
#include "slurm/local/slurm_users.h"

namespace slurmlet::daemon {

using std::chrono::seconds;

namespace {

// With slurm.conf, which says how many nodes start beside this one, before the Lease is read.
constexpr Duration kSitePatience = std::chrono::seconds{1};

}  // namespace

MainLoop::Api::Api(http::Client& client, const std::string& node_name, Shared& shared)
    : pace(shared.clock, system_random()),
      options{.counter = &shared.requests, .pace = &pace},
      nodes(client, options),
      leases(client, options),
      pods(client, options),
      events(client, {.counter = &shared.requests}),
      node_watch(kube::watch_own_node(client, node_name, options, system_random())),
      pod_watch(kube::watch_own_pods(client, node_name, options, system_random())) {}

MainLoop::MainLoop(const config::Settings& settings, NodeIdentity identity,
                   credentials::ApiAccess& access, credentials::ServingCertificate& serving,
                   std::unique_ptr<http::Client> client, Shared& shared)
    : settings_(settings),
      identity_(std::move(identity)),
      access_(access),
      client_(std::move(client)),
      shared_(shared),
      api_(*client_, name(), shared),
      credential_(access.credential_identity()),
      events_(api_.events, name(), system_random()),
      node_(api_.nodes, api_.leases, *api_.node_watch, events_, node_options(), system_random(),
            shared.lease),
      detach_file_(config::process_environment()("RUNTIME_DIRECTORY").value_or("")),
      pods_(api_.pods, *api_.pod_watch, events_, {name(), "", settings.pods.max_backoff},
            system_random()),
      credentials_(settings, access, serving, name(), *client_, api_.options),
      desired_(identity_.policy, SLURMLET_VERSION) {}

std::unique_ptr<sync::FactsSync> MainLoop::make_facts() {
  sync::FactsOptions options;
  options.paths.state_dir = settings_.state_dir;
  options.system_uuid = identity_.system_uuid;
  options.machine_interval = settings_.kubernetes.status_report_interval;
  options.not_ready_grace = settings_.node.not_ready_grace;
  options.slurm_users = slurm::usual_slurm_users;
  auto discover = [settings = settings_, hostname = identity_.hostname,
                   name = name()](const std::vector<slurm::SlurmdSeen>& slurmds) {
    return discover_slurm(settings, hostname, name, slurmds);
  };
  auto poll = std::make_unique<slurm::ControllerPoll>(
      poll_settings(settings_.slurm, {}), poll_sources(settings_.slurm), system_random());
  return std::make_unique<sync::FactsSync>(
      sync::FactsSync::Parts{.options = std::move(options),
                             .metal3 = identity_.metal3,
                             .discover = std::move(discover),
                             .unread = setup_before_slurm_conf(settings_),
                             .poll = std::move(poll),
                             .version_runner = std::make_unique<Command>(),
                             .unit_runner = std::make_unique<Command>()});
}

sync::NodeSyncOptions MainLoop::node_options() {
  sync::NodeSyncOptions options;
  options.report_interval = settings_.kubernetes.status_report_interval;
  options.recreate = settings_.node.recreate == config::Recreate::kAlways;
  options.recreate_after = settings_.node.recreate_after;
  options.deletion = load_deletion();
  options.deletion_changed = [this](const auto& deletion) { save_deletion(deletion); };
  options.provider_id_seen = [this](const std::string& id) { remember(id); };
  options.remembered_provider_id = identity_.remembered_provider_id;
  options.holder_identity = holder_identity_of(identity_);
  options.publish_server_version = settings_.node.kubelet_version == node::kAutoVersion;
  return options;
}

DeletionScope MainLoop::deletion_scope() const {
  return {settings_.state_dir,       identity_.boot_id,         name(),
          metal3_uuid_of(identity_), provider_id_of(identity_), credential_};
}

// Removes what is of another boot or identity.
std::optional<node::DeletionRecord> MainLoop::load_deletion() {
  auto deletion = load_deletion_record(deletion_scope(), now().steady);
  if (!deletion) {
    log::warning(deletion.error().message);
  }
  if (!deletion || !*deletion) {
    save_deletion(std::nullopt);
    return std::nullopt;
  }
  return *std::move(deletion);
}

void MainLoop::save_deletion(const std::optional<node::DeletionRecord>& deletion) {
  shared_.saver.save(
      "whether this Node was cordoned is not saved",
      [scope = deletion_scope(), deletion] { return save_deletion_record(scope, deletion); });
}

void MainLoop::notice_other_credential() {
  if (std::string fresh = access_.credential_identity(); fresh != credential_) {
    credential_ = std::move(fresh);
    node_.forget_deletion(now());
  }
}

// Each part may make a few calls; the watchdog timeout is per part.
Now MainLoop::begin_part() {
  const Now at = now();
  shared_.service.works(status::Loop::kMain, at);
  return at;
}

SteadyTime MainLoop::step() {
  const Now at = begin_part();
  if (!facts_) {
    facts_ = make_facts();
    node_.set_site(facts_->await_site(at, kSitePatience), at);
  }
  facts_->set_record(node_.record());
  SteadyTime next = facts_->step(at);
  node_.set_site(facts_->site(), at);
  if (refresh_desired(at)) {
    publish(at);  // what this machine knows does not wait for the API server
  }
  notice_other_credential();
  next = std::min(next, node_.step(at));
  detach_file_.set(node_.detached());
  if (facts_->set_record(node_.record())) {
    next = at.steady;
  }
  if (node_.registered()) {
    save_identity_once();
    credentials_.set_addresses(node_.desired().addresses);
    pods_.set_node_uid(node_.uid());
    next = std::min(next, pods_.step(begin_part()));
  } else {
    pods_.rest();
  }
  next = std::min(next, events_.step(begin_part()));
  next = std::min(next, credentials_.step(begin_part()));
  if (credentials_.take_replaced()) {
    node_.credential_replaced(at);
    pods_.credential_replaced(at);
    next = at.steady;
  }
  shared_.saver.step();
  publish(at);
  return next;
}

void MainLoop::wait(SteadyTime next, const std::vector<int>& others) {
  const auto lease = shared_.lease.status.get();
  shared_.service.sleeps(status::Loop::kMain, now(), next, *shared_.report.get(),
                         lease ? *lease : sync::LeaseStatus{});
  std::vector<int> fds = facts_->wake_fds();
  fds.push_back(credentials_.fd());
  fds.insert(fds.end(), others.begin(), others.end());
  std::erase(fds, -1);
  (void)client_->wait(next, fds);
}

void MainLoop::send_last(bool host_stops, Duration limit) {
  const UniqueFd timer{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)};
  itimerspec when{};
  when.it_value.tv_nsec = std::chrono::nanoseconds{limit}.count() % 1'000'000'000;
  when.it_value.tv_sec = std::chrono::duration_cast<seconds>(limit).count();
  ::timerfd_settime(timer.get(), 0, &when, nullptr);
  client_->set_abort_fd(timer.get());
  api_.pace.answered();  // the last requests are sent even to an overloaded server
  if (host_stops) {
    say_shutting_down();
  }
  events_.flush(now());
  client_->set_abort_fd(-1);
}

void MainLoop::say_shutting_down() {
  refresh_desired(now(), true);
  if (const Status said = node_.flush(now()); said) {
    log::info("the host is shutting down; Node " + name() + " marked not ready");
  } else {
    log::warning("the host is shutting down, but the Node could not be updated: " +
                 said.error().message);
  }
}

// So that a later boot without metadata is still the same node.
void MainLoop::save_identity_once() {
  if (!std::exchange(identity_saved_, true) && identity_.metal3) {
    remember(identity_.remembered_provider_id);
  }
}

void MainLoop::remember(const std::string& provider_id) {
  identity_.remembered_provider_id = provider_id;
  identity_saved_ = true;
  shared_.saver.save("providerID not saved",
                     [settings = settings_, identity = identity_, provider_id] {
                       return remember_provider_id(settings, identity, provider_id);
                     });
}

// Whether there was anything new.
bool MainLoop::refresh_desired(Now at, bool shutting_down) {
  node::ReadyContext ready_context = facts_->ready_context(at);
  ready_context.shutting_down = shutting_down;
  facts_->prefer_address(client_->local_address());
  const node::HostFacts& facts = facts_->facts();
  pods_.set_cluster(facts.slurm_conf.cluster_name);
  node_.set_cluster(facts.slurm_conf.cluster_name);
  auto desired = desired_.follow(facts, ready_context);
  if (!desired) {
    return false;
  }
  node_.set_desired(*std::move(desired), at);
  return true;
}

void MainLoop::publish(Now at) {
  status::Report report;
  report.node_name = name();
  report.registered = node_.registered();
  report.block_reason = node_.block_reason();
  report.deleted_with_machine = node_.went_with_machine();
  report.api_server = access_.server();
  report.api_error = node_.write_error();
  report.api_error_since = node_.write_error_since();
  report.node_drift = node_.drift(at.steady);
  report.ready = *node::find_condition(node_.desired().conditions, node::vocabulary::kReady);
  report.metal3_uuid = metal3_uuid_of(identity_);
  report.provider_id = provider_id_of(identity_);
  report.facts = facts_->facts();
  report.slurmctld = facts_->poll_counters();
  report.certificates = credentials_.report(at.wall);
  report.pods_rejected = pods_.rejected();
  report.pods_finished = pods_.finished();
  report.pods_waiting = pods_.waiting();
  report.pods_unreadable = pods_.unreadable();
  report.pods_seen = pods_.sees();
  report.events_dropped = events_.dropped();
  shared_.report.set(std::move(report));
}

}  // namespace slurmlet::daemon
