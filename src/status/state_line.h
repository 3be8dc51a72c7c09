#pragma once

// The daemon's state in one line, for `systemctl status` and `slurmlet status`. Pure.
//
//   n1: Ready, Slurm IDLE, lease renewed 14:02:11Z
//
//   n1: NotReady, slurmd is down, Slurm IDLE, lease renewed 14:02:11Z
//
//   n1: not registered: API server https://192.0.2.10:6443 does not answer (connection refused)

#include <string>

#include "status/report.h"
#include "sync/lease_link.h"

namespace slurmlet::status {

// The whole line, with times in UTC. Always valid UTF-8 of at most kMaxStateLine bytes without
// control characters, whatever Slurm and the API server have returned.
std::string state_line(const Report& report, const sync::LeaseStatus& lease);

// The same without the time of the last renewal, so that it only changes with the state.
std::string state_text(const Report& report, const sync::LeaseStatus& lease);

inline constexpr std::size_t kMaxStateLine = 400;

}  // namespace slurmlet::status
