#include "operator/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "yaml/document.h"

namespace slurmlet::op {
namespace {

using Row = OptionRow;

constexpr std::string_view kConfig = "--config";
constexpr std::string_view kNoService = "--no-service";

const Row* find_row(std::string_view name, std::string_view Row::*by) {
  for (const Row& row : option_rows()) {
    if (row.*by == name) {
      return &row;
    }
  }
  return nullptr;
}

void set(const Row& row, const std::string& place, const std::string& value, Options& options,
         std::string& problems) {
  if (const auto problem = row.set(options, value)) {
    problems += fmt::format("{} {}\n", place, *problem);
  }
}

// The list of drainOn as its flag has it.
std::string drain_on_text(const yaml::Document& document, const yaml::Value& list,
                          std::string& problems) {
  std::string out;
  for (const yaml::Value& item : list.items()) {
    std::string field[3];
    const bool is_complete =
        item.entries().size() == 3 && std::ranges::all_of(item.entries(), [&](const auto& entry) {
          const int at = entry.first == "type"     ? 0
                         : entry.first == "status" ? 1
                         : entry.first == "for"    ? 2
                                                   : -1;
          field[std::max(at, 0)] = entry.second.text();
          return at >= 0;
        });
    if (!is_complete) {
      problems += document.where(item) + ": drainOn has of each condition type, status and for\n";
      continue;
    }
    out += fmt::format("{}{}={}:{}", out.empty() ? "" : ",", field[0], field[1], field[2]);
  }
  return out;
}

void read_entry(const yaml::Document& document, const std::string& key, const yaml::Value& value,
                Options& options, std::string& problems) {
  const std::string where = document.where_key(value) + ": ";
  const Row* row = find_row(key, &Row::key);
  if (key == "apiVersion" || key == "kind") {
    const std::string_view wanted =
        key == "kind" ? "OperatorConfiguration" : "slurmlet.io/v1alpha1";
    if (value.text() != wanted) {
      problems += fmt::format("{}{} is \"{}\"; it must be {}\n", where, key, value.text(), wanted);
    }
  } else if (row == nullptr) {
    problems +=
        fmt::format("{}there is no setting \"{}\"; see slurmlet-operator --help\n", where, key);
  } else if (key == "drainOn" && value.is_list()) {
    set(*row, where + key, drain_on_text(document, value, problems), options, problems);
  } else if (!value.is_scalar()) {
    problems += fmt::format("{}{} must be a single value\n", where, key);
  } else if (!value.is_null()) {
    set(*row, where + key, value.text(), options, problems);
  }
}

void read_config(const std::string& path, Options& options, std::string& problems) {
  const auto text = read_file(path);
  if (!text && text.error().code == Code::kNotFound && path == kUsualConfig) {
    options.config_file.clear();
    return;
  }
  if (!text) {
    problems += text.error().message + "; name another file with --config\n";
    return;
  }
  const auto document = yaml::parse(*text, path);
  if (!document) {
    problems += document.error().message + "\n";
    return;
  }
  const yaml::Value& root = document->root();
  if (!root.is_map()) {
    problems += path + " is not a map of settings; it must start with apiVersion and kind\n";
    return;
  }
  for (const char* key : {"apiVersion", "kind"}) {
    if (root.find(key) == nullptr) {
      problems += fmt::format("{}: {} is missing\n", path, key);
    }
  }
  for (const auto& [key, value] : root.entries()) {
    read_entry(*document, key, value, options, problems);
  }
}

struct Flag {
  std::string name;
  std::optional<std::string> value;
};

Flag split_flag(const std::string& argument) {
  const auto equals = argument.find('=');
  return equals == std::string::npos
             ? Flag{argument, std::nullopt}
             : Flag{argument.substr(0, equals), argument.substr(equals + 1)};
}

std::optional<CommandLine::Action> action_of(const std::string& argument) {
  if (argument == "--version") {
    return CommandLine::Action::kVersion;
  }
  return argument == "--help" || argument == "-h" ? std::optional{CommandLine::Action::kHelp}
                                                  : std::nullopt;
}

CommandLine::Action command_of(std::string_view word) {
  using Action = CommandLine::Action;
  return word == "check"       ? Action::kCheck
         : word == "init"      ? Action::kInit
         : word == "uninstall" ? Action::kUninstall
         : word == "power"     ? Action::kPower
                               : Action::kRun;
}

bool is_admins(CommandLine::Action action) {
  return action == CommandLine::Action::kInit || action == CommandLine::Action::kUninstall;
}

using Arguments = std::vector<std::string>;

// The two words after `power`.
Status read_power(Arguments::const_iterator& next, Arguments::const_iterator end,
                  PowerArguments& power) {
  if (end - next >= 2 && (*next == "suspend" || *next == "resume") && !next[1].starts_with('-')) {
    power = {*next == "resume" ? PowerAction::kResume : PowerAction::kSuspend, next[1]};
    next += 2;
    return {};
  }
  const bool asks_help = next != end && action_of(*next).has_value();
  return asks_help ? Status{}
                   : Error{Code::kInvalid,
                           "power needs suspend or resume, and nodes of Slurm, for example: "
                           "slurmlet-operator power suspend nid[0001-0004]"};
}

// Stops at --help and --version.
Result<std::vector<Flag>> read_flags(const Arguments& arguments, CommandLine& command) {
  CommandLine::Action& action = command.action;
  std::vector<Flag> flags;
  auto next = arguments.begin();
  if (next != arguments.end()) {
    action = command_of(*next);
    next += action == CommandLine::Action::kRun ? 0 : 1;
  }
  if (action == CommandLine::Action::kPower) {
    TRY(read_power(next, arguments.end(), command.power));
  }
  for (; next != arguments.end(); ++next) {
    if (const auto other = action_of(*next)) {
      action = *other;
      return flags;
    }
    Flag flag = split_flag(*next);
    const Row* row = find_row(flag.name, &Row::flag);
    const bool is_no_service = flag.name == kNoService && is_admins(action);
    if (row == nullptr && flag.name != kConfig && !is_no_service) {
      return Error{Code::kInvalid,
                   "there is no flag " + flag.name + "; see slurmlet-operator --help"};
    }
    const bool is_switch = is_no_service || (row != nullptr && row->type.empty());
    if (!flag.value && is_switch) {
      flag.value = "true";
    } else if (!flag.value && ++next != arguments.end()) {
      flag.value = *next;
    } else if (!flag.value) {
      return Error{Code::kInvalid, flag.name + " needs a value"};
    }
    flags.push_back(std::move(flag));
  }
  return flags;
}

// Takes the flags that mean something else for init and uninstall than in the file.
AdminFlags take_admin_flags(std::vector<Flag>& flags) {
  AdminFlags out;
  std::erase_if(flags, [&out](const Flag& flag) {
    if (flag.name == "--kubeconfig") {
      out.kubeconfig = *flag.value;
    } else if (flag.name == "--dry-run") {
      out.dry_run = flag.value != "false";
    } else if (flag.name == kNoService) {
      out.no_service = flag.value != "false";
    } else {
      return false;
    }
    return true;
  });
  return out;
}

// Checks the merged values of flags and file.
void check_source(const Options& options, std::string& problems) {
  const std::string& url = options.slurm_rest_url;
  const bool is_rest = options.slurm_source == Options::Source::kRest;
  const auto wrong = [&](bool is_wrong, const char* why) { problems += is_wrong ? why : ""; };
  wrong(is_rest && url.empty(),
        "slurmSource is rest, but slurmRestURL is not set; set it to unix:/PATH of slurmrestd's "
        "socket or to https://HOST:PORT\n");
  wrong(!is_rest && !url.empty(),
        "slurmRestURL is set, but slurmSource is cli; set slurmSource to rest, or remove it\n");
  wrong(!options.slurm_rest_ca_file.empty() && !url.starts_with("https://"),
        "slurmRestCAFile is set, but slurmRestURL is not https://; remove it\n");
  wrong(is_rest && url.starts_with("http") && options.slurm_jwt_file.empty(),
        "slurmRestURL is not a Unix socket, so slurmrestd requires a token; set slurmJwtFile\n");
}

}  // namespace

Result<CommandLine> parse_operator_command_line(const std::vector<std::string>& arguments) {
  CommandLine out;
  auto flags = TRY(read_flags(arguments, out));
  if (is_admins(out.action)) {
    out.admin = take_admin_flags(flags);
  }
  std::string problems;
  out.options.config_file = kUsualConfig;
  for (const Flag& flag : flags) {
    if (flag.name == kConfig) {
      out.options.config_file = *flag.value;
    }
  }
  read_config(out.options.config_file, out.options, problems);
  for (const Flag& flag : flags) {
    if (const Row* row = find_row(flag.name, &Row::flag)) {
      set(*row, flag.name, *flag.value, out.options, problems);
    }
  }
  check_source(out.options, problems);
  if (!out.options.management_kubeconfig.empty() && out.options.machine_cluster.empty()) {
    problems +=
        "managementKubeconfig is set, but machineCluster is not; set it to NAMESPACE/NAME of the "
        "Machines' Cluster\n";
  }
  if (!problems.empty()) {
    return Error{Code::kInvalid, std::string{trim(problems)}};
  }
  return out;
}

std::string describe(const Options& options) {
  std::string text;
  for (const Row& row : option_rows()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", row.key, row.show(options));
  }
  return text;
}

std::string help_text() {
  std::string text =
      "usage: slurmlet-operator [check | init | uninstall | power] [flags]\n\n"
      "Publishes slurmctld's records of all nodes on their Nodes, drains the nodes that are\n"
      "cordoned, and releases a deleted Machine once its jobs have ended. Run one per Slurm "
      "cluster\n"
      "(a second one is a standby); see slurmlet-operator(8).\n"
      "check: verifies that everything it needs is in place; changes nothing.\n"
      "init: applies rights and policies with an administrator's --kubeconfig (KUBECONFIG, "
      "/etc/kubernetes/admin.conf),\n"
      "  writes the operator's own kubeconfig, and starts the service.\n"
      "uninstall: lists what the operator left in the cluster and in Slurm, and takes it back.\n"
      "power suspend HOSTLIST, power resume HOSTLIST: for SuspendProgram and ResumeProgram of "
      "Slurm, "
      "switch the\n"
      "  Metal3 hosts of these nodes off and on.\n\n"
      "flags, and keys of the configuration file:\n"
      "  --config string\n"
      "      configuration file (kind OperatorConfiguration; default /etc/slurmlet/operator.yaml, "
      "if "
      "it exists)\n";
  for (const Row& row : option_rows()) {
    const std::string value = row.show(Options{});
    text +=
        fmt::format("  {}{}{}  [{}]\n      {}{}\n", row.flag, row.type.empty() ? "" : " ", row.type,
                    row.key, row.help, value.empty() ? "" : fmt::format(" (default {})", value));
  }
  return text +
         "  --no-service\n"
         "      init, uninstall: leave the service alone, as where there is no systemd\n"
         "  --version, --help\n";
}

}  // namespace slurmlet::op
