#pragma once

// The running daemon: connections, threads, loops, signals. Everything here is wiring; what is
// decided is decided in node/, when it is done is decided in sync/ and slurm/sources/.

#include "base/result.h"
#include "base/signals.h"
#include "config/settings.h"
#include "status/service_report.h"

namespace slurmlet::daemon {

// Runs until SIGTERM or SIGINT. Returns an error only when it cannot begin (bad credential, no node
// name, port taken); an API server that is down is waited for.
Status run_daemon(const config::Settings& settings, Signals& signals,
                  status::ServiceReport& service);

}  // namespace slurmlet::daemon
