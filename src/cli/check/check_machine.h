#pragma once

// `slurmlet check`: Slurm on this machine, the ports and the running daemon.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "check/finding.h"
#include "check/service_unit.h"
#include "daemon/node_preview.h"
#include "host/listening.h"
#include "node/facts.h"
#include "status/daemon_status.h"

namespace slurmlet::cli {

// Pure.
check::Findings metadata_findings(const daemon::NodeIdentity& identity,
                                  const std::string& state_dir);
check::Finding slurmd_finding(const node::SlurmdFacts& slurmd);
check::Finding slurmctld_finding(const node::HostFacts& facts, const slurm::PollCounters& counters,
                                 const daemon::SlurmConfSeen& conf);
check::Finding gpu_finding(const node::HostFacts& facts);

// `port` as in "10250 (endpoint.port)"; `owner`: who listens there, `is_daemon` whether that may be
// slurmlet. Pure.
check::Finding port_finding(const std::string& port, const std::optional<host::PortOwner>& owner,
                            bool is_daemon, const std::optional<status::DaemonStatus>& daemon);
check::Findings port_findings(const config::Settings& settings,
                              const std::optional<status::DaemonStatus>& daemon);

// `answer` of DaemonClient. Not running is no error before the unit is enabled: check may come
// first. Pure.
check::Finding daemon_finding(const Result<status::DaemonStatus>& answer,
                              const check::ServiceUnit& unit);

}  // namespace slurmlet::cli
