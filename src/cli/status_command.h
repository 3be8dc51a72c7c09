#pragma once

// `slurmlet status` and `slurmlet wait-registered`: what the daemon of this machine says, asked
// over its health port. They print to stdout what was requested, and log why they fail. Need no
// privilege beyond reading the configuration.

#include "config/duration.h"
#include "config/load.h"

namespace slurmlet::cli {

// Exit code: 0 registered and healthy, 1 it runs but is not, 3 no daemon answers (as systemctl's
// "not running").
int run_status(const config::Settings& settings, const config::ParsedCommandLine& command);

// --timeout of a command that waits.
Result<config::Milliseconds> wait_limit(const config::ParsedCommandLine& command);

// Waits for a daemon to come up too; with --timeout=0 checks once. --sentinel: file to write with
// "success" when it is so. Exit code: 0 the Node is registered and its Lease held, 1 not within the
// time (the daemon's own reason is logged) or the sentinel cannot be written, 2 the time is none or
// there is no port.
int run_wait_registered(const config::Settings& settings, const config::ParsedCommandLine& command);

}  // namespace slurmlet::cli
