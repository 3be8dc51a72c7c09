#pragma once

// Finds a Machine's Node and all Slurm nodes on its host. The match must be certain, since deleting
// the Machine drains these nodes and ends their jobs. Pure.

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

// Slurm nodes of one dump by possible names of their host.
struct HostIndex {
  using Index = std::multimap<std::string, const SlurmNode*>;
  Index by_label;             // first_label() of NodeName and of NodeHostName
  Index by_address, by_host;  // NodeAddr, NodeHostName
  HostIndex() = default;
  explicit HostIndex(const SlurmNodes& nodes);
};

struct SiteView {
  SiteNodes& nodes;
  const DumpedNodes& dump;
  const HostIndex& hosts;
};

using Machines = std::map<std::string, kube::Machine>;  // by key_of()

// "NAMESPACE/NAME"
std::string key_of(const kube::Machine& machine);
// Of its MachineDeployment, "NAMESPACE/NAME".
std::string deployment_key(const kube::Machine& machine);

struct MachinePlace {
  KubeNode node;  // or a placeholder with the Machine's name and uid
  bool has_node = false;
  bool is_elsewhere = false;  // handled by the operator of another Slurm cluster
  bool never_provisioned = false;
  std::vector<const SlurmNode*> slurm;  // on its host, in the last dump
  std::string unclear;                  // why the match is not certain
};

// By nodeRef, or before that is set by providerID; nullptr: it has no Node.
const KubeNode* node_of(const kube::Machine& machine, const SiteNodes& nodes);
// `claims`: number of Machines that have this Node.
MachinePlace find_place(const kube::Machine& machine, const SiteView& site, std::size_t claims);
// Why the Machines, and what else these Clusters have, may not all be this site's when no Cluster
// is configured; "" = they are.
std::string doubt_about(const Machines& machines, std::set<std::string> clusters = {});

// MachineDeployments with a Machine of another Slurm cluster, whose operator makes such marks, too.
std::set<std::string> deployments_elsewhere(const Machines& machines, const SiteNodes& nodes);

// Of the only live Machine that has this Node, or has no Node yet and this name.
std::optional<MachineNames> names_of(const Machines& machines, const std::string& node);

}  // namespace slurmlet::op
