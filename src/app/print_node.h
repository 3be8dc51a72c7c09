#pragma once

// `slurmlet print-node`: the Node that would be registered, from what this machine shows, without
// any API server.

#include <string>

#include "base/result.h"
#include "config/settings.h"

namespace slurmlet::app {

// `format` is "yaml" or "json". Waits for slurmctld's answer, at most the command timeout.
Result<std::string> print_node(const config::Settings& settings, const std::string& format);

}  // namespace slurmlet::app
