#pragma once

// The operator's process: connections, loop, server, signals and service manager.

#include <string>
#include <vector>

namespace slurmlet::op {

// Returns the exit code: 0 stopped by a signal, 1 cannot run, 2 bad configuration.
int run(const std::vector<std::string>& arguments);

}  // namespace slurmlet::op
