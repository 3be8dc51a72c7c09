#pragma once

// Whether a Node that was deleted went with its Cluster API Machine. Cluster API cordons the Node,
// and deletes it once the host is deprovisioned; a node credential cannot look for the Machine, so
// what was last seen of the Node decides. Pure.

#include <optional>
#include <string>

#include "node/node.h"

namespace slurmlet::node {

// What matters of a Node once it is gone.
struct LastSight {
  std::string uid;
  std::string machine;  // annotation cluster.x-k8s.io/machine; "" = of no Machine
  bool operator==(const LastSight&) const = default;
};

// Nothing of a Node that is not cordoned: nothing of it has to be kept.
std::optional<LastSight> cordoned_sight(const ObservedNode& node);

// A Node that was deleted, `last` seen like this, is not to come back by itself.
bool went_with_machine(const LastSight& last);

}  // namespace slurmlet::node
