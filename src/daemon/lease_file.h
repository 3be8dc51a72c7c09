#pragma once

// STATE_DIR/lease.json (mode 0600): the Lease as slurmlet left it when it was stopped. The next
// start renews it when it is due, before it has looked at anything: after a restart of all daemons
// of a large site that takes a while. It is good once, on the same API server, for the same holder,
// and only as long as the Lease lasts: later the Node may be another one.

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api.h"

namespace slurmlet::daemon {

struct LeaseScope {
  std::string state_dir;
  std::string api_server, node_name, holder_identity;
  bool operator==(const LeaseScope&) const = default;
};

struct LeftLease {
  kube::Lease lease;
  std::string watch_from;  // where the watch of the Node stood: what happened since is told
  bool operator==(const LeftLease&) const = default;
};

// Removes the file.
std::optional<LeftLease> take_lease(const LeaseScope& scope, WallTime now);

Status leave_lease(const LeaseScope& scope, const LeftLease& left);

}  // namespace slurmlet::daemon
