#pragma once

// Matches Nodes to Slurm nodes. A daemon reports its Slurm node in an annotation, where a
// compromised compute node can write any name. That is harmless for records (the Node shows a wrong
// state of its own), but a cordon must not drain another node: for that the name must follow from
// the Node's name, which the API server guarantees, and no other Node may claim it. Pure.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/rules/site.h"

namespace slurmlet::op {

// The Slurm node that the daemon reports, or before that the Node's own name.
const std::string& claimed_name(const KubeNode& node);

// Whether the name of a Node, Machine or host can be this Slurm node's.
bool fits(std::string_view name, const SlurmNode& slurm);

// "n1" of "N1.cluster.local".
std::string first_label(std::string_view name);

// The Nodes that claim a Slurm node and whose own names fit.
std::vector<std::string> claimants(const std::map<std::string, std::set<std::string>>& by_slurm,
                                   const SlurmNode& slurm);

// Why the Node's claim does not allow changes in Slurm; "" = it does. `claims`: number of
// claimants().
std::string distrust(const KubeNode& node, const SlurmNode& slurm, std::size_t claims);

}  // namespace slurmlet::op
