#include "operator/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/child_limits.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/result.h"
#include "base/signals.h"
#include "base/text.h"
#include "credentials/access.h"
#include "kube/certificate_api.h"
#include "kube/rest_api.h"
#include "operator/check.h"
#include "operator/init_command.h"
#include "operator/local_settings.h"
#include "operator/operator_loop.h"
#include "operator/operator_pages.h"
#include "operator/options.h"
#include "operator/power_command.h"
#include "operator/servers.h"
#include "operator/slurm_runner.h"
#include "operator/uninstall_command.h"
#include "podapi/server.h"
#include "status/service_manager.h"

namespace slurmlet::op {
namespace {

constexpr int kCannotRun = 1;
constexpr int kBadConfiguration = 2;

int fail(const Error& error) {
  log::error_lines(error.message);
  return error.code == Code::kInvalid ? kBadConfiguration : kCannotRun;
}

podapi::ServerOptions server_options(const std::string& address) {
  podapi::ServerOptions options;
  const auto colon = address.rfind(':');
  options.address = address.substr(0, colon);
  if (options.address.starts_with('[')) {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  options.port = parse_int<int>(std::string_view{address}.substr(colon + 1)).value_or(0);
  options.port_flag = "--metrics-address";
  return options;
}

// The loop and its dependencies, in order of construction.
class Process {
 public:
  // `management`: the server of the Machines, if it is another one.
  Process(const Options& options, ApiConnection nodes, std::optional<ApiConnection> management,
          std::string cluster);

  void watch_certificates(OperatorContext& context);
  Status start_server();
  SteadyTime reload_credentials();
  // `watchdog`: the service manager's WatchdogSec.
  void run(Signals& signals, const status::Notifier& notifier, std::optional<Duration> watchdog);
  void report_api(const std::string& problem);

 private:
  const Options& options_;
  SystemClock clock_;
  NodeServer nodes_;
  MachineServer machines_;
  Leader leader_;
  std::unique_ptr<OperatorLoop> loop_;
  podapi::Pages pages_{[this, host = host_name()](const auto& head) {
    return operator_page(head, host, loop_->status());
  }};
  std::unique_ptr<podapi::Server> server_;
  SteadyTime reload_at_{}, report_api_at_{};
  std::string reload_problem_, reported_api_problem_;
};

Process::Process(const Options& options, ApiConnection nodes,
                 std::optional<ApiConnection> management, std::string cluster)
    : options_(options),
      nodes_{options_, std::move(nodes.access), std::move(nodes.client)},
      machines_(options_, clock_, nodes_, std::move(management)),
      leader_(nodes_.leases, leader_lease(cluster), leader_identity(), system_random(), clock_) {
  OperatorSettings settings;
  settings.dump = {slurm_client(options_), options_.interval, std::move(cluster)};
  settings.self = slurm_identity(options_.slurm_jwt_file, clock_);
  settings.elect_leader = options_.leader_elect && !options_.dry_run;
  settings.dry_run = options_.dry_run;
  settings.policy = options_.drain_policy;
  settings.health = options_.health;
  settings.all_machines = options_.machine_cluster.empty();
  settings.bootstrap_group = options_.bootstrap_group;
  settings.scale_up_per_minute = options_.scale_up_per_minute;
  OperatorContext context{clock_,
                          *nodes_.nodes,
                          nodes_.site,
                          leader_,
                          nodes_.events,
                          *machines_.machines,
                          machines_.api,
                          machines_.events,
                          [this](SteadyTime now) { return machines_.time(now); },
                          nodes_.node_leases,
                          nodes_.node_api,
                          [this] { return slurm_runner(options_.slurm_jwt_file, clock_); }};
  watch_certificates(context);
  if (options_.autoscale) {
    context.scale = &machines_.scale;
  }
  loop_ = std::make_unique<OperatorLoop>(std::move(settings), std::move(context),
                                         dump_source(options_, *nodes_.client, clock_),
                                         system_random());
}

void Process::watch_certificates(OperatorContext& context) {
  const auto watch = [&](const char* signer) {
    nodes_.certificates.push_back(
        kube::watch_certificate_requests(*nodes_.client, signer, nodes_.calls, system_random()));
    context.certificates.push_back({signer, nodes_.certificates.back().get()});
    context.approvals = &nodes_.approvals;
  };
  if (options_.approve_serving) {
    watch(kube::kServingSigner);
  }
  if (!options_.bootstrap_group.empty()) {
    watch(kube::kClientSigner);
  }
}

Status Process::start_server() {
  if (options_.metrics_address.empty()) {
    return {};
  }
  server_ = std::make_unique<podapi::Server>(server_options(options_.metrics_address), pages_);
  return server_->start();
}

// Tokens rotate within the hour.
SteadyTime Process::reload_credentials() {
  const SteadyTime now = clock_.now().steady;
  if (now >= reload_at_) {
    reload_at_ = now + std::chrono::minutes{1};
    std::string problem;
    for (auto* access : {&nodes_.access, machines_.own ? &machines_.own->access : nullptr}) {
      const Status reloaded = access != nullptr ? access->reload() : Status{};
      if (!reloaded) {
        problem += (problem.empty() ? "" : "; ") + reloaded.error().message;
      }
    }
    if (problem != reload_problem_ && !problem.empty()) {
      log::warning("the old credential stays in use: " + problem);
    }
    reload_problem_ = problem;
  }
  return reload_at_;
}

// Logs at most once a minute, since the problem may change each time.
void Process::report_api(const std::string& problem) {
  const SteadyTime now = clock_.now().steady;
  if (problem == reported_api_problem_ || now < report_api_at_) {
    return;
  }
  if (problem.empty()) {
    log::info("the API server accepts all requests again");
  } else {
    log::warning(problem);
  }
  reported_api_problem_ = problem;
  report_api_at_ = now + std::chrono::minutes{1};
}

void Process::run(Signals& signals, const status::Notifier& notifier,
                  std::optional<Duration> watchdog) {
  nodes_.client->set_abort_fd(signals.fd());
  if (machines_.own) {
    machines_.own->client->set_abort_fd(signals.fd());
  }
  (void)notifier.send(status::kReadyLine);
  std::string last_status;
  SteadyTime ping_at = watchdog ? SteadyTime{} : kNever;
  while (!signals.take_stop()) {
    SteadyTime next = std::min(loop_->step(), reload_credentials());
    std::vector<int> fds = loop_->wake_fds();
    fds.push_back(signals.fd());
    if (server_) {
      next = std::min(next, server_->step(clock_.now()));
      fds.push_back(server_->fd());
    }
    const OperatorStatus status = loop_->status();
    const std::string line =
        fmt::format("{}, {}, {} in Slurm{}", status.leads ? "leader" : "standby",
                    counted(status.nodes, "Node"), counted(status.slurm_nodes, "node"),
                    status.dump_problem.empty() ? "" : "; slurmctld: " + status.dump_problem);
    report_api(status.api_problem);
    if (line != last_status) {
      (void)notifier.send(status::status_line(line));
      last_status = line;
    }
    if (const SteadyTime now = clock_.now().steady; now >= ping_at) {
      (void)notifier.send(status::kWatchdogLine);
      ping_at = now + *watchdog / 3;
    }
    nodes_.client->wait(std::min(next, ping_at), fds);
  }
  (void)notifier.send(status::kStoppingLine);
  nodes_.client->set_abort_fd(-1);
  server_.reset();
  loop_.reset();  // ends running commands before another operator leads
  if (options_.leader_elect) {
    leader_.resign(clock_.now());
  }
  log::info("stopped");
}

Status run_with(Options options) {
  tune_allocator();  // else each answer of squeue leaves its size behind
  protect_own_memory();
  log::set_level(options.log_level);
  const status::ManagerEnvironment manager = status::take_manager_environment();
  auto notifier = status::Notifier::open(manager.notify_socket);
  auto signals = TRY(Signals::open());
  log::info("slurmlet-operator " SLURMLET_VERSION " starts: " + describe(options));
  auto cluster = TRY(cluster_name(options.slurm_conf));
  const SystemClock clock;
  auto api = TRY(connect_api(options.kubeconfig, clock));
  auto management = TRY(connect_management(*api.client, options.management_kubeconfig, clock));
  Process process{options, std::move(api), std::move(management), std::move(cluster)};
  TRY(process.start_server());
  process.run(signals, notifier ? *std::move(notifier) : status::Notifier{}, manager.watchdog);
  return {};
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  const auto command = parse_operator_command_line(arguments);
  if (!command) {
    return fail(command.error());
  }
  switch (command->action) {
    case CommandLine::Action::kHelp:
      std::fputs(help_text().c_str(), stdout);
      return 0;
    case CommandLine::Action::kVersion:
      std::puts("slurmlet-operator " SLURMLET_VERSION);
      return 0;
    case CommandLine::Action::kCheck: {
      Options options = command->options;
      CheckSettings settings{
          api_settings(options.kubeconfig),
          std::nullopt,
          cluster_name(options.slurm_conf),
          {options.config_file, options.kubeconfig, options.management_kubeconfig,
           options.slurm_jwt_file, options.slurm_rest_ca_file, options.slurm_conf}};
      if (!options.management_kubeconfig.empty()) {
        settings.management = api_settings(options.management_kubeconfig);
      }
      return run_check(options, settings);
    }
    case CommandLine::Action::kInit:
      return run_init(*command);
    case CommandLine::Action::kUninstall:
      return run_uninstall(*command);
    case CommandLine::Action::kPower:
      return run_power(*command);
    case CommandLine::Action::kRun:
      break;
  }
  const Status ended = run_with(command->options);
  return ended ? 0 : fail(ended.error());
}

}  // namespace slurmlet::op
