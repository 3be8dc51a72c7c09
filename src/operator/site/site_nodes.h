#pragma once

// The Nodes registered by slurmlets, from their watch, by name and by claimed Slurm node. Values
// only; not thread-safe.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/api.h"
#include "operator/rules/matching.h"

namespace slurmlet::op {

class SiteNodes {
 public:
  using Claims = std::map<std::string, std::set<std::string>>;  // Slurm node → Nodes

  // `cluster`: ClusterName of Slurm, in lower case.
  explicit SiteNodes(std::string cluster) : cluster_(std::move(cluster)) {}

  SteadyTime step(kube::Watch<kube::SiteNode>& watch, Now now);
  bool known() const { return known_; }
  const std::map<std::string, KubeNode>& all() const { return nodes_; }
  const Claims& by_slurm() const { return by_slurm_; }  // of our Slurm cluster
  const KubeNode* find(const std::string& name) const;
  // Names of Nodes changed, or deleted, since the last call.
  std::set<std::string> take_changed() { return std::exchange(changed_, {}); }
  std::set<std::string> take_gone() { return std::exchange(gone_, {}); }
  // Resets to the state after a start.
  void forget();
  // Records a fresh read or our own write until the watch reports it.
  void put(const kube::SiteNode& node);
  KubeNode& at(const std::string& name) { return nodes_.at(name); }

 private:
  void replace_all(const std::vector<kube::SiteNode>& nodes);
  void remove(const std::string& name);

  std::string cluster_;
  std::map<std::string, KubeNode> nodes_;
  Claims by_slurm_;
  std::set<std::string> changed_, gone_;
  bool known_ = false;
};

}  // namespace slurmlet::op
