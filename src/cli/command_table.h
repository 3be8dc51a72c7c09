#pragma once

// The commands of slurmlet, one row each: name, flags, help and what runs it. The command line, the
// help texts and the dispatch are made from this table.

#include <string_view>
#include <vector>

#include "config/parsed_command_line.h"

namespace slurmlet::cli {

struct CommandFlag {
  std::string_view name;        // "--output"; "FILE" is the argument behind the command
  std::string_view short_name;  // "-o"; "" = none
  std::string_view type;        // for the help: "string"; "" = a switch, "true" when given
  std::string_view default_text;
  std::string_view help;
  std::vector<std::string_view> choices = {};  // empty = any value

  bool is_argument() const { return !name.starts_with("--"); }
  bool is_switch() const { return !is_argument() && type.empty(); }
  // Its key in ParsedCommandLine::options: "output", "file".
  std::string_view key() const { return is_argument() ? std::string_view{"file"} : name.substr(2); }
};

struct Command {
  std::string_view name;
  std::string_view usage;        // its own flags: "[-o text|json]"
  std::string_view summary;      // for the list of commands
  std::string_view description;  // for its own --help
  std::string_view exit_codes;   // likewise; "" = nothing to say
  std::vector<CommandFlag> flags;
  bool takes_settings;  // flags for settings have a meaning
  int (*run)(const config::ParsedCommandLine&);
};

// The first is the one without a name on the command line.
const std::vector<Command>& commands();

// nullptr when there is none.
const Command* find_command(std::string_view name);

}  // namespace slurmlet::cli
