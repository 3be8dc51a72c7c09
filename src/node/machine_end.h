#pragma once

// Whether a Node that was deleted went with its Cluster API Machine. Cluster API cordons the Node,
// and deletes it once the host is deprovisioned; a node credential cannot look for the Machine, so
// what was last seen of the Node decides. slurmlet-operator marks a Node whose machine has left
// Slurm (annotation slurmlet.io/detach: Detached) before that. Pure.

#include <optional>
#include <string>

#include "node/node.h"

namespace slurmlet::node {

// What matters of a Node once it is gone.
struct LastSight {
  std::string uid;
  std::string machine;  // annotation cluster.x-k8s.io/machine; "" = of no Machine
  bool detached = false;
  bool operator==(const LastSight&) const = default;
};

// slurmlet-operator has taken this machine out of Slurm: slurmd is not to register again.
bool is_detached(const ObservedNode& node);

// Nothing of a Node that is neither cordoned nor detached: nothing of it has to be kept.
std::optional<LastSight> last_sight(const ObservedNode& node);

// A Node that was deleted, `last` seen like this, is not to come back by itself.
bool went_with_machine(const LastSight& last);

}  // namespace slurmlet::node
