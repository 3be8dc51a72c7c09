#pragma once

// The operator as a process: its connections, the loop, its server, signals and the service
// manager.

#include <string>
#include <vector>

namespace slurmlet::op {

// The exit code: 0 stopped by a signal, 1 cannot run, 2 bad configuration.
int run(const std::vector<std::string>& arguments);

}  // namespace slurmlet::op
