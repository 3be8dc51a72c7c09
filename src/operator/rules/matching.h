#pragma once

// Which of Slurm's nodes a Node is. Its daemon says so in an annotation, and whoever has taken over
// a compute node can write any name there. That does no harm where a record is published (the Node
// shows a state that is not its own), but a cordon must not drain the node of somebody else: for
// that the name must follow from the Node's own, which the API server vouches for, and be claimed
// by no other Node. Pure.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/rules/site.h"

namespace slurmlet::op {

// The name of the Slurm node that this Node is, if it is one: what its daemon says, or before that
// its own name.
const std::string& claimed_name(const KubeNode& node);

// Whether the name of a Node, of a Machine or of its host can be that of this node of Slurm.
bool fits(std::string_view name, const SlurmNode& slurm);

// "n1" of "N1.cluster.local".
std::string first_label(std::string_view name);

// Of the Nodes that claim a node of Slurm, those whose own names fit.
std::vector<std::string> claimants(const std::map<std::string, std::set<std::string>>& by_slurm,
                                   const SlurmNode& slurm);

// Why nothing may be done in Slurm on this Node's word; "" when all is well.
// `claims`: how many claimants() it has.
std::string distrust(const KubeNode& node, const SlurmNode& slurm, std::size_t claims);

}  // namespace slurmlet::op
