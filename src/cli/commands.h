#pragma once

// The subcommands of slurmlet.

#include <string>
#include <vector>

#include "config/parsed_command_line.h"

namespace slurmlet::cli {

// Runs the command line (arguments[0] is the program's name) and returns the exit code: 0, 1 when
// it could not be done, 2 for a bad command line or configuration; status_command.h and
// check_command.h say what theirs mean.
int run(const std::vector<std::string>& arguments);

// Those of command_table.h.
int run_forever(const config::ParsedCommandLine& command);
int status_command(const config::ParsedCommandLine& command);
int check_command(const config::ParsedCommandLine& command);
int wait_registered_command(const config::ParsedCommandLine& command);
int print_node_command(const config::ParsedCommandLine& command);
int parse_slurm_command(const config::ParsedCommandLine& command);
int config_table_command(const config::ParsedCommandLine& command);
int version_command(const config::ParsedCommandLine& command);

}  // namespace slurmlet::cli
