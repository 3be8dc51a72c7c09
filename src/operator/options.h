#pragma once

// The operator's settings: flags override the configuration file (apiVersion slurmlet.io/v1alpha1,
// kind OperatorConfiguration), which overrides defaults. An error lists all problems, one per line,
// with place and fix. Pure but for reading the file.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "config/duration.h"
#include "operator/machines/machine_sync.h"
#include "operator/rules/health_rules.h"
#include "operator/rules/power_rules.h"

namespace slurmlet::op {

inline constexpr const char* kUsualConfig = "/etc/slurmlet/operator.yaml";

struct Options {
  std::string config_file;            // "" = none
  std::string kubeconfig;             // "" = the pod's service account
  std::string management_kubeconfig;  // for Machines; "" = the same cluster
  std::string machine_cluster;        // NAMESPACE/NAME; "" = the only one
  DrainPolicy drain_policy;
  std::string slurm_conf;  // "" = Slurm's own search
  std::string slurm_bin_dir;
  std::string slurm_jwt_file;                        // "" = munge, auth/slurm; slurmrestd: our uid
  enum class Source : std::uint8_t { kCli, kRest };  // of dumps
  Source slurm_source = Source::kCli;
  std::string slurm_rest_url;
  std::string slurm_rest_ca_file;                // "" = system CAs
  std::optional<config::Milliseconds> interval;  // nothing = by number of nodes
  config::Milliseconds slurm_command_timeout{15'000};
  HealthPolicy health;
  bool approve_serving = true;  // certificates
  std::string bootstrap_group;  // may request client certificates; "" = no group
  bool autoscale = false;       // MachineDeployments with slurmlet.io/scale-for
  int scale_up_per_minute = 10;
  bool leader_elect = true;
  std::string leader_namespace = "slurmlet-system";
  std::string metrics_address = "127.0.0.1:10258";  // "" = none
  bool dry_run = false;
  log::Level log_level = log::Level::kInfo;
};

// The problem, as the end of a sentence that starts with the setting's name (config/rules.h).
using OptionProblem = std::optional<std::string>;

// A flag, its key in the file, help and accessors.
struct OptionRow {
  std::string_view key, flag;
  std::string_view type;  // in the help; "" = boolean
  std::string_view help;
  OptionProblem (*set)(Options&, const std::string&);
  std::string (*show)(const Options&);
};
std::span<const OptionRow> option_rows();

// Flags of init and uninstall, whose --kubeconfig is an administrator's.
struct AdminFlags {
  std::string kubeconfig;
  bool dry_run = false;
  bool no_service = false;
};

// `power suspend HOSTLIST`
struct PowerArguments {
  PowerAction action = PowerAction::kSuspend;
  std::string hosts;
};

struct CommandLine {
  enum class Action { kRun, kCheck, kInit, kUninstall, kPower, kHelp, kVersion };
  Action action = Action::kRun;
  Options options;
  AdminFlags admin;
  PowerArguments power;
};

// `arguments` do not include the program's name. Errors are kInvalid.
Result<CommandLine> parse_operator_command_line(const std::vector<std::string>& arguments);

// For the start-up log; contains no secrets.
std::string describe(const Options& options);
std::string help_text();

}  // namespace slurmlet::op
