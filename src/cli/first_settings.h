#pragma once

// The configuration at the start of the daemon. Where the package was just installed and nothing
// names an API server yet, the service is ready and waits: what an administrator or a cloud-init
// script writes then is read at once.

#include <functional>

#include "base/file_watch.h"
#include "base/result.h"
#include "base/signals.h"
#include "config/settings.h"
#include "status/service_report.h"

namespace slurmlet::cli {

// As `read` (config::load) returns it. Waits only under a service manager and only while that is
// kNotFound at first; a problem that comes up while it waits is logged, and waited out. kCancelled
// when a signal ended the wait. `files` are watched: the configuration file and one of the
// directory beside it.
Result<config::Settings> first_settings(const std::function<Result<config::Settings>()>& read,
                                        FileWatch::Files files, Signals& signals,
                                        status::ServiceReport& service);

}  // namespace slurmlet::cli
