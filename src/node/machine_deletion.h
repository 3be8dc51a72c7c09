#pragma once

// Whether a Node that was deleted went with its Cluster API Machine. Cluster API cordons the Node,
// and deletes it once the host is deprovisioned; a node credential cannot look for the Machine, so
// what was last seen of the Node decides. slurmlet-operator marks a Node whose machine has left
// Slurm (annotation slurmlet.io/detach: Detached) before that. Pure.

#include <optional>
#include <string>

#include "base/clock.h"
#include "node/node.h"

namespace slurmlet::node {

// What is known of our Node's end, or would be should it be deleted now. daemon/ keeps it over a
// restart of slurmlet within one boot.
struct DeletionRecord {
  std::string uid;
  std::string machine;  // annotation cluster.x-k8s.io/machine; "" = of no Machine
  bool detached = false;
  // Since when the Node is known to be gone with its Machine; nothing = it was there when last
  // seen. CLOCK_MONOTONIC, so good for one boot.
  std::optional<SteadyTime> gone_at = {};
  std::string deleted_at = {};  // the same for people, RFC 3339
  bool operator==(const DeletionRecord&) const = default;
};

// slurmlet-operator has taken this machine out of Slurm: slurmd is not to register again.
bool is_detached(const ObservedNode& node);

// Nothing of a Node that is neither cordoned nor detached: nothing of it has to be kept.
std::optional<DeletionRecord> snapshot(const ObservedNode& node);

// A Node that was deleted, `last` seen like this, is not to come back by itself.
bool went_with_machine(const DeletionRecord& last);

}  // namespace slurmlet::node
