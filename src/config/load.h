#pragma once

// From the command line to finished Settings: flags over environment over file over defaults.
//
//   auto command = cli::parse_command_line(arguments);
//   auto settings = load(*command, process_environment(), read_whole_file(), read_directory());
//
// Every problem found is in the error, one a line, each with its place and its fix; the caller
// prints it and exits with code 2. Nothing is logged here; Settings::warnings is for the caller.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "config/sources.h"

namespace slurmlet::config {

// A command line after parsing (cli/commands.h).
struct ParsedCommandLine {
  std::string program;     // base name of argv[0]
  std::string subcommand;  // "run" (default), "check", "print-node", …
  bool help = false;       // only show help_text(); nothing else was checked
  // The command's own flags (cli/commands.h) by key, with their defaults.
  std::map<std::string, std::string> options;
  // Settings given as flags, by key ("slurm.pollInterval").
  std::map<std::string, std::string> values;
  std::string config_file;  // "" unless --config was given
  std::string provider;
  std::string provider_config;
  std::vector<std::string> warnings;  // accepted flags without effect
  std::string argument;               // of a command that takes one: join's HOST:PORT
};

// read_file and list_directory of base/file.h.
FileReader read_whole_file();
DirectoryReader read_directory();

// The configuration file and the directory beside it, whose *.yaml are read, too: NAME.yaml,
// NAME.d.
std::string config_file(const ParsedCommandLine& command);
std::string drop_in_directory(const ParsedCommandLine& command);

// kNotFound: nothing is wrong, but no API server is named ("run" needs one).
Result<Settings> load(const ParsedCommandLine& command, const EnvLookup& environment,
                      const FileReader& files, const DirectoryReader& directories);

// Checks what concerns several settings at once and hands out the Settings. `needs_api_server`:
// whether an API server must be configured ("run" needs one, "print-node" does not).
Result<Settings> finalize(Draft draft, bool needs_api_server);

// All settings as one line of JSON for the start-up log. Paths and names only: the content of
// tokens and keys is never part of Settings.
std::string effective_settings_json(const Settings& settings);

}  // namespace slurmlet::config
