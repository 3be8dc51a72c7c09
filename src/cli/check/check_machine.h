#pragma once

// The rules of `slurmlet check` about Slurm on this machine, the ports and the running daemon.
// Facts in, findings out. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/check/check_finding.h"
#include "daemon/node_preview.h"
#include "node/facts.h"
#include "status/daemon_status.h"

namespace slurmlet::cli {

Finding slurmd_finding(const node::HostFacts& facts);
Finding slurmctld_finding(const node::HostFacts& facts, const slurm::PollCounters& counters,
                          const daemon::SlurmConfSeen& conf);
Finding gpu_finding(const node::HostFacts& facts);

struct MungeSeen {
  std::optional<std::string> socket;  // daemon::SlurmConfSeen::munge_socket
  std::string problem;                // why nobody listens there; "" = somebody does
  std::string encode_error;  // why no credential could be made; "" = one was, or was not tried
};
Finding munge_finding(const MungeSeen& seen);

struct PortSeen {
  int port = 0;
  std::string what;     // "kubelet API"
  std::string setting;  // "endpoint.port"
  bool taken = false;
  int pid = 0;                  // of who listens; 0 = not to be seen
  std::string program = {};     // of that process
  bool of_socket_unit = false;  // it is systemd, for slurmlet.socket
  std::string other = {};       // who holds it, when the daemon does not run as that user
};
// `shown`: systemctl show --property=ActiveState,Listen slurmlet.socket.
bool socket_unit_has(const std::string& shown, int port);
Findings port_findings(const std::vector<PortSeen>& ports,
                       const std::optional<status::DaemonStatus>& daemon);

// `answer` of DaemonClient. Not running is no error: check may come first.
Finding daemon_finding(const Result<status::DaemonStatus>& answer);

}  // namespace slurmlet::cli
