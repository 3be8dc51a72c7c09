#pragma once

// desired_node: the one place that decides what is reported to the cluster about this machine.
//
// Turns one HostFacts snapshot into the Node this daemon wants the API server to hold. Pure: no
// clock, no I/O, no logging, no JSON. Same facts, same node. Not here: reading facts (slurm/,
// host/, metal3/), comparing (node_diff.h), sending (kube/).

#include <string>

#include "node/conditions.h"
#include "node/facts.h"
#include "node/node.h"
#include "node/policy.h"

namespace slurmlet::node {

DesiredNode desired_node(const HostFacts& facts, const NodePolicy& policy,
                         const Circumstances& circumstances, const std::string& slurmlet_version);

}  // namespace slurmlet::node
