#pragma once

// `slurmlet print-node`: the Node that would be registered, from what this machine shows, without
// any API server.

#include <string>

#include "base/result.h"
#include "config/settings.h"

namespace slurmlet::cli {

// As JSON. Waits for slurmctld's answer, at most the command timeout.
Result<std::string> print_node(const config::Settings& settings);

}  // namespace slurmlet::cli
