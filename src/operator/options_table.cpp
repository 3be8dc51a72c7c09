#include "operator/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/rules.h"
#include "config/settings_table.h"

namespace slurmlet::op {
namespace {

using config::Milliseconds;
using std::chrono::seconds;
using Problem = OptionProblem;
using Row = OptionRow;

std::string is(const std::string& value, std::string_view rest) {
  return fmt::format("is \"{}\"; {}", value, rest);
}

template <auto Member>
Problem set_text(Options& options, const std::string& value) {
  options.*Member = value;
  return std::nullopt;
}

template <auto Member>
std::string show_text(const Options& options) {
  return options.*Member;
}

template <auto Member>
Problem set_switch(Options& options, const std::string& value) {
  if (value != "true" && value != "false") {
    return is(value, "it must be true or false");
  }
  options.*Member = value == "true";
  return std::nullopt;
}

template <auto Member>
std::string show_switch(const Options& options) {
  return options.*Member ? "true" : "false";
}

template <auto Member, int From, int To>
Problem set_duration(Options& options, const std::string& value) {
  const auto duration = config::parse_duration(value);
  if (!duration || *duration < seconds{From} || *duration > seconds{To} ||
      *duration % seconds{1} != Milliseconds{0}) {
    return is(value, fmt::format("it must be whole seconds between {}s and {}s, for example 15s",
                                 From, To));
  }
  options.*Member = *duration;
  return std::nullopt;
}

template <auto Member>
std::string show_duration(const Options& options) {
  return config::format_duration(options.*Member);
}

template <auto Member, int From, int To>
Problem set_number(Options& options, const std::string& value) {
  const auto number = parse_int<int>(value);
  if (!number || *number < From || *number > To) {
    return is(value, fmt::format("it must be a number between {} and {}", From, To));
  }
  options.*Member = *number;
  return std::nullopt;
}

template <auto Member>
std::string show_number(const Options& options) {
  return std::to_string(options.*Member);
}

Problem set_interval(Options& options, const std::string& value) {
  if (value == "auto") {
    options.interval.reset();
    return std::nullopt;
  }
  const auto problem = set_duration<&Options::interval, 1, 3600>(options, value);
  return problem ? std::optional{*problem + ", or auto"} : std::nullopt;
}

std::string show_interval(const Options& options) {
  return options.interval ? config::format_duration(*options.interval) : "auto";
}

template <auto Member>
Problem set_path(Options& options, const std::string& value) {
  if (!value.empty() && value.front() != '/') {
    return is(value, "it must be an absolute path");
  }
  return set_text<Member>(options, value);
}

// An empty value must not mean "trust the system's CAs".
Problem empty_problem(const std::string& value) {
  return value.empty() ? Problem{"is empty; fill it, or remove it"} : std::nullopt;
}

Problem set_rest_ca_file(Options& options, const std::string& value) {
  const auto problem = empty_problem(value);
  return problem ? problem : set_path<&Options::slurm_rest_ca_file>(options, value);
}

// The same values as the daemon's.
std::span<const config::Word> levels() { return config::find_row("logLevel")->words; }

Problem set_level(Options& options, const std::string& value) {
  for (const config::Word& word : levels()) {
    if (value == word.text) {
      options.log_level = static_cast<log::Level>(word.value);
      return std::nullopt;
    }
  }
  return is(value, "it must be debug, info, warning or error");
}

std::string show_level(const Options& options) {
  const auto all = levels();
  return std::string{std::find_if(all.begin(), all.end(), [&](const config::Word& word) {
                       return word.value == static_cast<int>(options.log_level);
                     })->text};
}

Problem set_address(Options& options, const std::string& value) {
  const auto colon = value.rfind(':');
  const int port = colon == std::string::npos
                       ? 0
                       : parse_int<int>(std::string_view{value}.substr(colon + 1)).value_or(0);
  if (!value.empty() && (port < 1 || port > 65535)) {
    return is(value, "it must be ADDRESS:PORT, for example 127.0.0.1:10258, or empty for none");
  }
  return set_text<&Options::metrics_address>(options, value);
}

Problem set_cluster(Options& options, const std::string& value) {
  const auto slash = value.find('/');
  if (!value.empty() && (slash == std::string::npos || slash == 0 || slash != value.rfind('/') ||
                         slash + 1 >= value.size())) {
    return is(value, "it must be NAMESPACE/NAME of a Cluster of Cluster API");
  }
  return set_text<&Options::machine_cluster>(options, value);
}

Problem set_source(Options& options, const std::string& value) {
  if (value != "cli" && value != "rest") {
    return is(value, "it must be cli or rest");
  }
  options.slurm_source = value == "rest" ? Options::Source::kRest : Options::Source::kCli;
  return std::nullopt;
}

std::string show_source(const Options& options) {
  return options.slurm_source == Options::Source::kRest ? "rest" : "cli";
}

Problem set_rest_url(Options& options, const std::string& value) {
  config::Row row = *config::find_row("kubernetes.server");
  row.rule = config::rest_url_problem;
  const auto problem = value.empty() ? std::nullopt : config::text_problem(row, value);
  return problem ? problem : set_text<&Options::slurm_rest_url>(options, value);
}

Problem set_policy(Options& options, const std::string& value) {
  const auto policy = parse_drain_policy(value);
  if (!policy) {
    return is(value, "it must be wait, now or deadline=DURATION, for example deadline=12h");
  }
  options.drain_policy = *policy;
  return std::nullopt;
}

std::string show_policy(const Options& options) { return drain_policy_text(options.drain_policy); }

// "TYPE=STATUS:DURATION,…", to which the file's list is brought too (options.cpp).
Problem set_drain_on(Options& options, const std::string& value) {
  std::vector<BadCondition> all;
  for (const auto one : value.empty() ? std::vector<std::string_view>{} : split(value, ',')) {
    const auto colon = one.rfind(':');
    const auto equals = one.substr(0, colon).rfind('=');
    const auto lasting =
        colon == one.npos ? std::nullopt : config::parse_duration(one.substr(colon + 1));
    if (equals == one.npos || equals == 0 || !lasting || *lasting < Milliseconds{0}) {
      return is(std::string{one},
                "it must be TYPE=STATUS:DURATION, for example GPUHealthy=False:2m");
    }
    const std::string status{one.substr(equals + 1, colon - equals - 1)};
    if (status != "True" && status != "False" && status != "Unknown") {
      return is(status, "the status of a condition must be True, False or Unknown");
    }
    all.push_back({std::string{one.substr(0, equals)}, status, *lasting});
  }
  options.health.drain_on = std::move(all);
  return std::nullopt;
}

std::string show_drain_on(const Options& options) {
  std::string text;
  for (const BadCondition& one : options.health.drain_on) {
    text +=
        fmt::format("{}{}={}:{}", text.empty() ? "" : ",", one.type, one.status,
                    config::format_duration(std::chrono::duration_cast<Milliseconds>(one.lasting)));
  }
  return text;
}

Problem set_max_unhealthy(Options& options, const std::string& value) {
  const auto percent = value.ends_with('%')
                           ? parse_int<int>(std::string_view{value}.substr(0, value.size() - 1))
                           : std::nullopt;
  if (!percent || *percent < 1 || *percent > 100) {
    return is(value, "it must be between 1% and 100%");
  }
  options.health.max_unhealthy = *percent;
  return std::nullopt;
}

std::string show_max_unhealthy(const Options& options) {
  return fmt::format("{}%", options.health.max_unhealthy);
}

using O = Options;

constexpr Row kRows[] = {
    {"kubeconfig", "--kubeconfig", "string",
     "kubeconfig file of the operator's own credential; without it the service account of a pod",
     set_path<&O::kubeconfig>, show_text<&O::kubeconfig>},
    {"managementKubeconfig", "--management-kubeconfig", "string",
     "the same for the Machines of Cluster API, where they are in another cluster; needs\n"
     "      machineCluster",
     set_path<&O::management_kubeconfig>, show_text<&O::management_kubeconfig>},
    {"machineCluster", "--machine-cluster", "string",
     "NAMESPACE/NAME of the Cluster whose Machines are the nodes; without it all, if they are of\n"
     "      one Cluster, but none that has no Node",
     set_cluster, show_text<&O::machine_cluster>},
    {"drainPolicy", "--drain-policy", "string",
     "what happens to the jobs of a deleted Machine: wait, deadline=DURATION or now; its\n"
     "      annotation slurmlet.io/drain-policy overrides this",
     set_policy, show_policy},
    {"autoscale", "--autoscale", "",
     "give MachineDeployments with the annotation slurmlet.io/scale-for as many Machines as the\n"
     "      queue needs; needs deploy/operator/rbac-autoscaling.yaml",
     set_switch<&O::autoscale>, show_switch<&O::autoscale>},
    {"scaleUpPerMinute", "--scale-up-per-minute", "number",
     "how many Machines autoscale adds in a minute at most",
     set_number<&O::scale_up_per_minute, 1, 1000>, show_number<&O::scale_up_per_minute>},
    {"drainOn", "--drain-on", "string",
     "conditions of a Node that drain its Slurm node, TYPE=STATUS:DURATION,…, for example\n"
     "      GPUHealthy=False:2m; in the file a list of type, status and for; default: none",
     set_drain_on, show_drain_on},
    {"maxUnhealthy", "--max-unhealthy", "percent",
     "how much of a partition drainOn may drain at once; one node in any case", set_max_unhealthy,
     show_max_unhealthy},
    {"slurmConf", "--slurm-conf", "string", "slurm.conf, where it is not in its usual place",
     set_path<&O::slurm_conf>, show_text<&O::slurm_conf>},
    {"slurmBinDir", "--slurm-bin-dir", "string",
     "directory of Slurm's commands, where they are not in PATH", set_path<&O::slurm_bin_dir>,
     show_text<&O::slurm_bin_dir>},
    {"slurmJwtFile", "--slurm-jwt-file", "string",
     "file with a token (JWT) of Slurm for its commands and slurmrestd, reloaded when it changes;\n"
     "      without it munge or auth/slurm",
     set_path<&O::slurm_jwt_file>, show_text<&O::slurm_jwt_file>},
    {"slurmSource", "--slurm-source", "string",
     "where the dump of all nodes comes from: cli (scontrol) or rest (slurmrestd, needs\n"
     "      slurmRestURL); all else is done by Slurm's commands",
     set_source, show_source},
    {"slurmRestURL", "--slurm-rest-url", "string",
     "where slurmrestd listens: unix:/PATH or https://HOST:PORT", set_rest_url,
     show_text<&O::slurm_rest_url>},
    {"slurmRestCAFile", "--slurm-rest-ca-file", "string",
     "PEM file with the CA of slurmRestURL, without it the system's CAs", set_rest_ca_file,
     show_text<&O::slurm_rest_ca_file>},
    {"interval", "--interval", "duration",
     "how often slurmctld is queried for all nodes; auto is 15s, and above 5,000 nodes\n"
     "      3 ms for each node",
     set_interval, show_interval},
    {"slurmCommandTimeout", "--slurm-command-timeout", "duration",
     "how long one command of Slurm may take", set_duration<&O::slurm_command_timeout, 1, 600>,
     show_duration<&O::slurm_command_timeout>},
    {"approveServingCertificates", "--approve-serving-certificates", "",
     "approve the requests of nodes whose names and addresses are those of their Machine",
     set_switch<&O::approve_serving>, show_switch<&O::approve_serving>},
    {"approveClientsOfGroup", "--approve-clients-of-group", "string",
     "approve client certificates for nodes that have a Machine and are not Ready, requested by\n"
     "      this group of bootstrap tokens; default: none",
     set_text<&O::bootstrap_group>, show_text<&O::bootstrap_group>},
    {"leaderElect", "--leader-elect", "",
     "elect a leader among several operators by a Lease; only it acts",
     set_switch<&O::leader_elect>, show_switch<&O::leader_elect>},
    {"leaderNamespace", "--leader-namespace", "string", "namespace of that Lease",
     set_text<&O::leader_namespace>, show_text<&O::leader_namespace>},
    {"metricsAddress", "--metrics-address", "string",
     "where /metrics and /healthz are served, in plain HTTP; empty for nowhere", set_address,
     show_text<&O::metrics_address>},
    {"dryRun", "--dry-run", "", "say what would be done in Slurm and on Nodes, and do nothing",
     set_switch<&O::dry_run>, show_switch<&O::dry_run>},
    {"logLevel", "--log-level", "string", "debug, info, warning or error", set_level, show_level},
};

}  // namespace

std::span<const OptionRow> option_rows() { return kRows; }

}  // namespace slurmlet::op
