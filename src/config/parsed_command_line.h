#pragma once

// A command line after parsing (cli/command_line.h): what load.h takes settings from. Plain values.

#include <map>
#include <string>
#include <vector>

namespace slurmlet::config {

struct ParsedCommandLine {
  std::string program;     // base name of argv[0]
  std::string subcommand;  // "run" (default), "print-node", "parse-slurm", …
  bool help = false;       // only show help_text(); nothing else was checked
  // The command's own flags (cli/command_table.h) by key, with their defaults.
  std::map<std::string, std::string> options;
  // Settings given as flags, by key ("slurm.pollInterval") or old key; the flag is in
  // settings_table.h.
  std::map<std::string, std::string> values;
  std::string config_file;  // "" unless --config was given
  std::string provider;
  std::string provider_config;
  std::vector<std::string> warnings;  // accepted flags without effect
};

}  // namespace slurmlet::config
