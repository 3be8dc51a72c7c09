#pragma once

namespace slurmlet::sync {

// Most calls that a step makes one after the other; the next step makes the next. A slow API server
// takes up to ten seconds for each, and a watchdog has patience with a step for less than a minute.
inline constexpr int kCallsPerStep = 4;

}  // namespace slurmlet::sync
