#pragma once

// The operator's settings: flags over the configuration file (apiVersion slurmlet.io/v1alpha1, kind
// OperatorConfiguration) over defaults. One table of rows gives both. All that is wrong is in the
// error, one a line, with its place and the fix. Pure but for reading the file.

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

namespace slurmlet::op {

struct Options {
  std::string config_file;            // "" = none
  std::string kubeconfig;             // "" = the service account of a pod
  std::string management_kubeconfig;  // of the Machines; "" = the same cluster
  std::string machine_cluster;        // NAMESPACE/NAME; "" = whichever there is
  DrainPolicy drain_policy;
  std::string slurm_conf;  // "" = where Slurm looks by itself
  std::string slurm_bin_dir;
  std::string slurm_jwt_file;  // "" = munge or auth/slurm; slurmrestd: by our uid
  enum class Source : std::uint8_t { kCli, kRest };  // of the dump of all nodes
  Source slurm_source = Source::kCli;
  std::string slurm_rest_url;
  std::string slurm_rest_ca_file;                // "" = the system's CAs
  std::optional<config::Milliseconds> interval;  // nothing = by the size of the site
  config::Milliseconds slurm_command_timeout{15'000};
  bool approve_serving = true;  // certificates
  std::string bootstrap_group;  // whose client certificates are approved; "" = nobody's
  bool leader_elect = true;
  std::string leader_namespace = "slurmlet-system";
  std::string metrics_address = "127.0.0.1:10258";  // "" = none
  bool dry_run = false;
  log::Level log_level = log::Level::kInfo;
};

// What is wrong, as the end of a sentence that starts with the setting's name (config/rules.h).
using OptionProblem = std::optional<std::string>;

// A flag, a key of the file, their help and what they set.
struct OptionRow {
  std::string_view key, flag;
  std::string_view type;  // for the help; "" = true or false
  std::string_view help;
  OptionProblem (*set)(Options&, const std::string&);
  std::string (*show)(const Options&);
};
std::span<const OptionRow> option_rows();

struct CommandLine {
  enum class Action { kRun, kCheck, kHelp, kVersion };
  Action action = Action::kRun;
  Options options;
};

// Without the program's name. kInvalid.
Result<CommandLine> parse_operator_command_line(const std::vector<std::string>& arguments);

// For the start-up log, paths and names only.
std::string describe(const Options& options);
std::string help_text();

}  // namespace slurmlet::op
