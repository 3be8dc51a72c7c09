#pragma once

// How the daemon is, in one line for people: `systemctl status`, `slurmlet status`. Pure functions
// of what the threads have published.
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

// The whole line; times are UTC. One line of valid UTF-8, at most kMaxStateLine bytes, without
// control characters, whatever others (Slurm, the API server) have said.
std::string state_line(const Report& report, const sync::LeaseStatus& lease);

// The same without the time of the last renewal: changes when there is news, not with each renewal.
std::string state_words(const Report& report, const sync::LeaseStatus& lease);

inline constexpr std::size_t kMaxStateLine = 400;

}  // namespace slurmlet::status
