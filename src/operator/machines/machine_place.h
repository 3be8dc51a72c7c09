#pragma once

// Which Node a Machine is, and which Slurm nodes its host is: all of them, for a host may run
// several. Without a doubt, or not at all: what is done for the Machine is done to them. Pure.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/api.h"
#include "operator/machines/approval_rules.h"
#include "operator/rules/matching.h"
#include "operator/site/dumped_nodes.h"
#include "operator/site/site_nodes.h"

namespace slurmlet::op {

// Slurm's nodes by what may be a name of their host, of one dump.
struct HostIndex {
  using Index = std::multimap<std::string, const SlurmNode*>;
  Index by_label;             // first_label() of NodeName and of NodeHostName
  Index by_address, by_host;  // NodeAddr, NodeHostName
  HostIndex() = default;
  explicit HostIndex(const SlurmNodes& nodes);
};

// The rest of the site, as the loop has it.
struct SiteView {
  SiteNodes& nodes;
  const DumpedNodes& dump;
  const HostIndex& hosts;
};

using Machines = std::map<std::string, kube::Machine>;  // by key_of()

// "NAMESPACE/NAME"
std::string key_of(const kube::Machine& machine);

struct MachinePlace {
  KubeNode node;  // or what stands for it: named like the Machine, with its uid
  bool has_node = false;
  bool is_elsewhere = false;            // of another Slurm cluster, whose operator sees to it
  bool never_provisioned = false;       // no host was
  std::vector<const SlurmNode*> slurm;  // of its host, by the last dump
  std::string unclear;                  // why it is not certain
};

// By its nodeRef, or before that by its providerID; nullptr: it has none.
const KubeNode* node_of(const kube::Machine& machine, const SiteNodes& nodes);
// `claims`: how many Machines have this Node.
MachinePlace find_place(const kube::Machine& machine, const SiteView& site, std::size_t claims);
// Why it is not certain whose Machines these are, as no cluster was named; "" when it is.
std::string doubt_about(const Machines& machines);

// Of the one Machine that lives and has this Node, or has none yet and this name; nothing where
// there is none, or more than one.
std::optional<MachineNames> names_of(const Machines& machines, const std::string& node);

}  // namespace slurmlet::op
