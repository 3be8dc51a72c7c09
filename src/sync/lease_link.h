#pragma once

// What the loop of the Node and the loop of its Lease, which run on two threads, report to each
// other.

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/published.h"
#include "node/lease_holder.h"

namespace slurmlet::sync {

struct LeaseStatus {
  std::optional<WallTime> renewed_at;
  std::optional<SteadyTime> renewed_steady;
  std::string last_error;  // "" after a success
  // When another machine was last found holding it, and which.
  std::optional<SteadyTime> refused_at{};
  std::optional<node::HolderSighting> refused_by{};
};

struct LeaseLink {
  // By NodeSync: uid of the live Node, "" while there is none that is ours.
  Published<std::string> node_uid;
  // By NodeSync, before node_uid: a foreign holder that was found dead, whose Lease may be taken
  // over as long as it is just this one.
  Published<node::LeaseHolder> dead_holder;
  // By LeaseSync.
  Published<LeaseStatus> status;
};

}  // namespace slurmlet::sync
