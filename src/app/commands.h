#pragma once

// The subcommands of slurmlet.

#include <string>
#include <vector>

namespace slurmlet::app {

// Runs the command line (arguments[0] is the program's name) and returns the exit code: 0, 1 when
// it could not be done, 2 for a bad command line or configuration; status_command.h and
// check_command.h say what theirs mean.
int run(const std::vector<std::string>& arguments);

}  // namespace slurmlet::app
