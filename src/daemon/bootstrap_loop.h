#pragma once

// The main thread's loop while the node has no credential of its own: drives Bootstrap, answers on
// the health port and reports to the service manager, as the loop of a registered node does. It is
// no part of that loop (main_loop.h): every part of that one calls the API server with the
// credential that does not exist yet.

#include <string>

#include "base/signals.h"
#include "config/settings.h"
#include "daemon/shared.h"
#include "status/service_report.h"

namespace slurmlet::daemon {

// True when there is a credential, false when a signal stops the daemon.
bool run_bootstrap(const config::Settings& settings, const std::string& node_name, Signals& signals,
                   Shared& shared);

// Whether to stop now; reports that to systemd.
bool must_stop(Signals& signals, status::ServiceReport& service);

}  // namespace slurmlet::daemon
