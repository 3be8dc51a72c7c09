#pragma once

// The commands of slurmlet, one row each: name, flags, help and what runs it. The command line, the
// help texts and the dispatch are made from this table.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/load.h"
#include "config/settings_table.h"

namespace slurmlet::cli {

struct Command {
  std::string_view name;
  std::string_view usage = "";        // its own flags: "[-o text|json]"
  std::string_view summary = "";      // for the list of commands
  std::string_view description = "";  // for its own --help
  std::string_view exit_codes = "";   // likewise; "" = nothing to say
  std::vector<config::CommandFlag> flags = {};
  bool takes_settings = true;  // flags for settings have a meaning
  bool takes_argument = false;
  int (*run)(const config::ParsedCommandLine&);
};

// The first is the one without a name on the command line.
const std::vector<Command>& commands();
// nullptr when there is none.
const Command* find_command(std::string_view name);

// The command line: PROGRAM [COMMAND] [flags]. "--flag value" and "--flag=value"; booleans also
// without a value; the last of repeated flags counts, maps add up. The program's name does not
// matter: started as virtual-kubelet it takes virtual-kubelet's flags. Values are not checked
// here; load.h does that. `arguments` starts with argv[0]. kInvalid (exit code 2) with one line for
// each problem.
Result<config::ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments);

// A flag of virtual-kubelet 1.11 or of one derived from it that means nothing here. It is accepted
// with a warning, so that slurmlet takes its place without a change to how it is started.
struct IgnoredFlag {
  std::string_view flag;
  bool takes_value = true;  // false: a boolean, which may be given as --flag or --flag=true
};
const std::vector<IgnoredFlag>& ignored_flags();
std::string ignored_warning(const IgnoredFlag& flag);

// For `--help`, in the manner of the kubelet's: usage, then flags by section.
// `subcommand` as in ParsedCommandLine.
std::string help_text(const std::string& program, const std::string& subcommand);

// Runs the command line and returns the exit code: 0, 1 when it could not be done, 2 for a bad
// command line or configuration; status_command.h and check_command.h say what theirs mean.
int run(const std::vector<std::string>& arguments);

}  // namespace slurmlet::cli
