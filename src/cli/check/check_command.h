#pragma once

// `slurmlet check`: checks everything that slurmlet needs, on a fresh machine as well as beside a
// running daemon, as root or anybody, and prints what is wrong, why, and what to do. Writes
// nothing, queries slurmctld at most once, and ends within about twenty seconds whatever hangs.

#include <string>

#include "base/result.h"
#include "config/settings.h"

namespace slurmlet::cli {

// `settings` as load() gave them; `format` is "text" or "json". Prints to stdout. Exit code: 0 no
// errors (warnings allowed), 1 at least one error, 2 the configuration is wrong.
int run_check(const Result<config::Settings>& settings, const std::string& format);

}  // namespace slurmlet::cli
