#pragma once

// What slurmlet-operator left in Slurm, on Nodes, Machines and their templates, and what becomes of
// it when it is uninstalled. Nothing is taken back that a job needs:
//
// - A Machine that is being deleted keeps its hook: only the operator knows when its jobs have
//   ended. So nothing at all begins while there is one.
// - The drain of a host whose Machine is being deleted stays, without the hook too: a job that
//   starts there would be lost.
// - The drain of a cordoned Node stays, with a Reason that is not the operator's any more: whoever
//   cordoned it wants no job there.
//
// Pure.

#include <string>
#include <vector>

#include "operator/machines/machine_place.h"
#include "operator/site/node_changes.h"

namespace slurmlet::op {

// A MachineDeployment or MachineSet whose Machines get our annotations.
struct MachineTemplate {
  std::string kind, namespace_name, name, uid, resource_version;
  std::string cluster;                   // of Cluster API
  std::string path;                      // of the object
  std::vector<std::string> annotations;  // ours
};

struct NodeAnnotations {
  std::string node, uid;
  std::vector<std::string> annotations;
  bool operator==(const NodeAnnotations&) const = default;
};

struct SeenSite {
  SiteView site;
  const Machines& machines;
  const std::vector<MachineTemplate>& templates;
  // Another Slurm cluster's operator uses this cluster, and machineCluster names none: what has no
  // Node may be its own. So it is where the Machines are of several Clusters.
  bool is_shared = false;
};

// In the order of doing, each only after all before it have succeeded.
struct UninstallPlan {
  std::vector<std::string> blockers;  // why nothing may begin
  std::vector<NodeChange> slurm;
  std::vector<MachineTemplate> templates;
  std::vector<kube::Machine> machines;  // hook, drain policy and scale-down's mark
  std::vector<NodeAnnotations> nodes;
  std::vector<std::string> kept;  // what stays, why, and what to do

  bool is_done() const {
    return slurm.empty() && templates.empty() && machines.empty() && nodes.empty();
  }
};

UninstallPlan plan_uninstall(SeenSite seen);

// What is removed, as one line for people. `slurm`: by which the change was planned.
std::string describe(const NodeChange& change, const SlurmNodes& slurm);
std::string describe(const MachineTemplate& one);
std::string describe(const kube::Machine& machine);
std::string describe(const NodeAnnotations& node);

// Of the Machine: the operator's.
std::vector<std::string> own_annotations(const kube::Machine& machine);

}  // namespace slurmlet::op
