#include "cli/commands.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/child_limits.h"
#include "base/detached_task.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/signals.h"
#include "check/finding.h"
#include "cli/check/check_command.h"
#include "cli/first_settings.h"
#include "cli/join_command.h"
#include "cli/leave_command.h"
#include "cli/print.h"
#include "cli/print_node.h"
#include "cli/status_command.h"
#include "config/credentials.h"
#include "config/load.h"
#include "config/sources.h"
#include "credentials/bootstrap.h"
#include "daemon/daemon.h"
#include "kube/kubeconfig.h"
#include "status/daemon_status.h"
#include "status/service_manager.h"
#include "status/service_report.h"

namespace slurmlet::cli {
namespace {

// What only this program reads.
void hide_secrets(const config::Settings& settings) {
  const auto& kubernetes = settings.kubernetes;
  std::vector<std::filesystem::path> secrets;
  for (const std::string& path :
       {settings.state_dir, kubernetes.cert_dir, kubernetes.kubeconfig, kubernetes.key_file,
        kubernetes.token_file, kubernetes.bootstrap_kubeconfig, kubernetes.bootstrap_token_file,
        settings.endpoint.key_file}) {
    if (!path.empty()) {
      secrets.emplace_back(path);
    }
  }
  if (!kubernetes.kubeconfig.empty()) {
    secrets.emplace_back(credentials::replaced_kubeconfig(kubernetes.kubeconfig));
  }
  // It may be used much later only; the files of the other kubeconfig: ApiAccess.
  if (!kubernetes.bootstrap_kubeconfig.empty()) {
    DetachedTask<Result<kube::ClusterAccess>> reading;
    const auto bootstrap = in_time(
        reading, [path = kubernetes.bootstrap_kubeconfig] { return kube::load_kubeconfig(path); },
        std::chrono::seconds{5});
    if (bootstrap) {
      secrets.insert(secrets.end(), bootstrap->files.begin(), bootstrap->files.end());
      secrets.emplace_back(bootstrap->token_file);
    }
  }
  hide_from_children(secrets);
}

Result<config::Settings> read_settings(const config::ParsedCommandLine& command,
                                       const config::EnvLookup& environment) {
  return config::load(command, environment, config::read_whole_file(), config::read_directory());
}

// For a command beside the daemon: the configuration that the unit has.
Result<config::Settings> load_settings(const config::ParsedCommandLine& command) {
  auto settings = read_settings(
      command,
      config::with_unit_credentials(config::process_environment(), config::read_whole_file()));
  if (settings) {
    hide_secrets(*settings);
  }
  return settings;
}

// The environment with what was taken out of it for the sake of child processes.
config::EnvLookup environment_with(const status::ManagerEnvironment& manager) {
  return [process = config::process_environment(),
          directory = manager.credentials_directory](const std::string& name) {
    return name == config::kCredentialsVariable ? std::optional{directory} : process(name);
  };
}

status::Notifier open_notifier(const status::ManagerEnvironment& manager) {
  auto notifier = status::Notifier::open(manager.notify_socket);
  if (!notifier) {
    log::warning(notifier.error().message);
  }
  return notifier ? std::move(*notifier) : status::Notifier{};
}

void announce(const config::Settings& settings) {
  log::set_level(settings.log_level);
  for (const auto& warning : settings.warnings) {
    log::warning(warning);
  }
}

int run_forever(const config::ParsedCommandLine& command) {
  status::process_start();
  tune_allocator();
  auto signals = Signals::open();  // a signal before that would end us
  if (!signals) {
    return fail(signals.error(), kFailed);
  }
  const status::ManagerEnvironment manager = status::take_manager_environment();
  const config::EnvLookup environment = environment_with(manager);
  status::ServiceReport service{open_notifier(manager), manager.watchdog, manager.sockets};
  auto settings = first_settings(
      [&] { return read_settings(command, environment); },
      {config::config_file(command), config::drop_in_directory(command) + "/10-site.yaml"},
      *signals, service);
  if (!settings && settings.error().code == Code::kCancelled) {
    return 0;
  }
  if (!settings) {
    service.failing(settings.error().message);
    return fail(settings.error(), kBadConfiguration);
  }
  hide_secrets(*settings);
  announce(*settings);
  log::info("slurmlet " SLURMLET_VERSION " starts: " + config::effective_settings_json(*settings));
  if (const std::string why = children_not_confined(); !why.empty()) {
    log::info("Slurm's commands can read this node's credentials: " + why);
  }
  const Status ran = daemon::run_daemon(*settings, *signals, service);
  if (!ran) {
    service.failing(ran.error().message);
    return fail(ran.error(), ran.error().code == Code::kInvalid ? kBadConfiguration : kFailed);
  }
  return 0;
}

int print_node_command(const config::ParsedCommandLine& command) {
  auto settings = load_settings(command);
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  announce(*settings);
  auto text = print_node(*settings);
  if (!text) {
    return fail(text.error(), text.error().code == Code::kInvalid ? kBadConfiguration : kFailed);
  }
  print(*text);
  return 0;
}

// For commands that query the daemon: nothing of the settings is said but what is wrong.
template <int (*kQuery)(const config::Settings&, const config::ParsedCommandLine&)>
int with_settings(const config::ParsedCommandLine& command) {
  const auto settings = load_settings(command);
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  log::set_level(settings->log_level);
  return kQuery(*settings, command);
}

int check_command(const config::ParsedCommandLine& command) {
  return run_check(load_settings(command), command.options.at("output"));
}

int version_command(const config::ParsedCommandLine& /*command*/) {
  print("slurmlet " SLURMLET_VERSION "\n");
  return 0;
}

const config::CommandFlag kTextOrJson{.name = "--output",
                                      .short_name = "-o",
                                      .type = "string",
                                      .default_text = "text",
                                      .help = "text or json",
                                      .choices = {"text", "json"}};

const config::CommandFlag kSentinel{
    .name = "--sentinel", .type = "string", .help = "file to write once the Node is registered"};

const std::vector<Command> kCommands{
    {.name = "run", .run = run_forever},
    {.name = "status",
     .usage = "[-o text|json]",
     .summary = "query the running daemon",
     .description =
         "Shows the state of the daemon running on this machine, over endpoint.healthzPort.",
     .exit_codes =
         "0 registered and healthy; 1 running, but not healthy; 2 invalid configuration; 3 no\n"
         "daemon answers.",
     .flags = {kTextOrJson},
     .run = with_settings<run_status>},
    {.name = "check",
     .usage = "[-o text|json]",
     .summary = "find out what is wrong and how to fix it",
     .description =
         "Checks everything slurmlet needs and reports what is wrong, why, and how to fix it.\n"
         "Changes nothing, with or without a running daemon. Run it as root for complete results.",
     .exit_codes = "0 no errors (warnings allowed); 1 at least one error; 2 invalid configuration.",
     .flags = {kTextOrJson},
     .run = check_command},
    {.name = "wait-registered",
     .usage = "[--timeout=300] [--sentinel FILE]",
     .summary = "wait until the Node is registered",
     .description =
         "Waits until the daemon on this machine runs, its Node is registered and its Lease is\n"
         "held.",
     .exit_codes = "0 registered; 1 timed out (the reason is logged); 2 invalid configuration.",
     .flags = {{.name = "--timeout",
                .type = "duration",
                .default_text = "300",
                .help = "how long to wait; also whole seconds"},
               kSentinel},
     .run = with_settings<run_wait_registered>},
    {.name = "join",
     .usage = "HOST:PORT --token TOKEN --discovery-token-ca-cert-hash sha256:HEX [--dry-run]",
     .summary = "make this machine a node of a Kubernetes cluster",
     .description =
         "Verifies the cluster and the token, writes the configuration, enables and starts the\n"
         "service, and waits until the Node is registered. The arguments are those of kubeadm "
         "join:\n"
         "kubeadm token create --groups system:bootstrappers:slurmlet --print-join-command\n"
         "prints them. May be repeated. Needs root.",
     .exit_codes =
         "0 registered; 1 it could not be done, or not in time; 2 bad arguments or configuration.",
     .flags = {{.name = "--token", .type = "string", .help = "bootstrap token, ID.SECRET"},
               {.name = "--dry-run", .help = "verify, and print what would be written and run"},
               {.name = "--timeout",
                .type = "duration",
                .default_text = "300",
                .help = "how long to wait for the registration; also whole seconds"},
               kSentinel},
     .takes_argument = true,
     .run = run_join},
    {.name = "leave",
     .usage = "[--dry-run]",
     .summary = "take this machine out of the Kubernetes cluster",
     .description =
         "Stops and disables the service, deletes the Node, with its Lease, where the node's own\n"
         "credential may, and removes the credential and what slurmlet join wrote. Slurm, its "
         "jobs\n"
         "and the site's configuration are not touched. May be repeated. Needs root.",
     .exit_codes =
         "0 nothing is left; 1 it could not be done, or a Node is left, which the output names;\n"
         "2 invalid configuration.",
     .flags = {{.name = "--dry-run", .help = "print what would be done"}},
     .run = with_settings<run_leave>},
    {.name = "print-node",
     .usage = "[-o json]",
     .summary = "print the Node that this machine would register",
     .description =
         "Prints the Node that this machine would register, as JSON, without contacting an API\n"
         "server.",
     .flags = {{.name = "--output",
                .short_name = "-o",
                .type = "string",
                .default_text = "json",
                .help = "json",
                .choices = {"json"}}},
     .run = print_node_command},
    {.name = "version",
     .summary = "print the version",
     .takes_settings = false,
     .run = version_command},
};

}  // namespace

const std::vector<Command>& commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  for (const auto& command : commands()) {
    if (command.name == name) {
      return &command;
    }
  }
  return nullptr;
}

int run(const std::vector<std::string>& arguments) {
  const auto command = parse_command_line(arguments);
  if (!command) {
    return fail(command.error(), kBadConfiguration);
  }
  if (command->help) {
    print(help_text(command->program, command->subcommand));
    return 0;
  }
  return find_command(command->subcommand)->run(*command);
}

}  // namespace slurmlet::cli
