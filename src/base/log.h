#pragma once

// Logging to stderr in journald's manner: one line a message; under systemd (JOURNAL_STREAM names
// our stderr) each line starts with the syslog priority "<6>", else with a timestamp and level.
// State changes are logged, ticks are not. Never tokens, keys or whole bodies. Thread-safe, and
// never waits for the reader: what a full pipe or journald does not take is dropped, and counted in
// the next line.
//
// error: we could not do what was requested; warning: outside the expected flow, we go on;
// info: a state change; debug: what a developer wants.

#include <string>

namespace slurmlet::log {

enum class Level { kDebug, kInfo, kWarning, kError };

void set_level(Level level);
void debug(const std::string& message);
void info(const std::string& message);
void warning(const std::string& message);
void error(const std::string& message);
// Of several lines, as those about a configuration are.
void error_lines(const std::string& message);

}  // namespace slurmlet::log
