#pragma once

// Labels that administrators select nodes by, made of what Slurm says: cluster, version,
// partitions, features, types of GPU. Each kind can be switched off (NodePolicy::slurm_labels).
// Pure.
//
//   slurmlet.io/slurm-cluster=NAME       slurmlet.io/slurm-version=VERSION
//   partition.slurmlet.io/NAME=true      feature.slurmlet.io/NAME=true
//   gpu-type.slurmlet.io/TYPE=COUNT      slurmlet.io/gpu-type=TYPE (where there is one type only)
//
// Slurm's names may hold anything; a label's may not. A name that is a valid label name and does
// not begin with "x_" stays as it is. Any other becomes "x_" + escaped + "_x", where '_' is written
// "__" and a byte outside [A-Za-z0-9.-] is written '_' and two upper-case hex digits. Where that is
// longer than 63 characters it is "x_" + the beginning of the escaped form + "_h" + 16 hex digits
// of base's stable_hash of the name + "x". Two names never make one label (long ones but for a
// collision of 64 bits), and all but the cut ones can be read back.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "node/facts.h"
#include "node/policy.h"

namespace slurmlet::node {

// A label name, or value, for any name of Slurm's; "" stays "".
std::string label_name(std::string_view name);

std::map<std::string, std::string> slurm_labels(const HostFacts& facts, const NodePolicy& policy);

// Beginnings of the keys of labels above that are unknown now, though they are switched on: what
// the Node has of these is neither confirmed nor over.
std::set<std::string> unknown_label_prefixes(const HostFacts& facts, const NodePolicy& policy);

// ClusterName: of slurm.conf, else as the record has it; "" if unknown.
std::string slurm_cluster(const HostFacts& facts);

// slurmd's version: as the running slurmd has it, else as slurmctld has it; "" if unknown.
std::string slurm_version(const HostFacts& facts);

}  // namespace slurmlet::node
