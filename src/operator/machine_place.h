#pragma once

// Which Node and which Slurm node a Machine is. Without a doubt, or not at all: what is done for
// the Machine is done to them. Pure.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "kube/api.h"
#include "operator/approval_rules.h"
#include "operator/dumped_nodes.h"
#include "operator/rules/matching.h"

namespace slurmlet::op {

// The rest of the site, as the loop has it.
struct SiteView {
  const std::map<std::string, KubeNode>& nodes;
  const std::map<std::string, std::set<std::string>>& by_slurm;  // Slurm node → Nodes
  const DumpedNodes& dump;
};

using Machines = std::map<std::string, kube::Machine>;  // by key_of()

// "NAMESPACE/NAME"
std::string key_of(const kube::Machine& machine);

struct MachinePlace {
  KubeNode node;  // or what stands for it: named like the Machine, with its uid
  bool has_node = false;
  const SlurmNode* dumped = nullptr;     // by the last dump; null: slurmctld knows no such node
  const SlurmNode* now_known = nullptr;  // the same with what was learnt since
  std::string unclear;                   // why it is not certain
  const std::string& slurm_name() const {
    return dumped == nullptr ? claimed_name(node) : dumped->name;
  }
};

// By its nodeRef, or before that by its providerID; nullptr: it has none.
const KubeNode* node_of(const kube::Machine& machine, const SiteView& site);
// `claims`: how many Machines have this Node.
MachinePlace find_place(const kube::Machine& machine, const SiteView& site, std::size_t claims);
// Why it is not certain whose Machines these are, as no cluster was named; "" when it is.
std::string doubt_about(const Machines& machines);

// Of the one Machine that lives and has this Node, or has none yet and this name; nothing where
// there is none, or more than one.
std::optional<MachineNames> names_of(const Machines& machines, const std::string& node);

}  // namespace slurmlet::op
