#pragma once

// The command line: PROGRAM [run|status|check|wait-registered|print-node|parse-slurm|feed|
// config-table|version|help] [flags]. "--flag value" and "--flag=value"; booleans also without a
// value; the last of repeated flags counts, maps add up. The program's name does not matter:
// started as virtual-kubelet it takes virtual-kubelet's flags. Values are not looked at here;
// load.h does that.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace slurmlet::config {

struct ParsedCommandLine {
  std::string program;     // base name of argv[0]
  std::string subcommand;  // "run" (default), "print-node", "parse-slurm", …
  bool help = false;       // only show help_text(); nothing else was checked
  // Options of the subcommand by long name: print-node has "output" (yaml, json) and "diff"
  // ("true",
  // ""), status and check "output" (text, json), wait-registered "timeout" (a duration) and
  // "sentinel" (a file, "" = none), parse-slurm "file" ("" and "-" = stdin) and "node" ("" = all),
  // feed "feed-output" and "feed-interval".
  std::map<std::string, std::string> options;
  // Settings given as flags, by key ("slurm.pollInterval"); the flag is in settings_table.h.
  std::map<std::string, std::string> values;
  std::string config_file;  // "" unless --config was given
  std::string provider;
  std::string provider_config;
  std::vector<std::string> warnings;  // accepted flags without effect
};

// `arguments` starts with argv[0]. kInvalid (exit code 2) with one line for each problem.
Result<ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace slurmlet::config
