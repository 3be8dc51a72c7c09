#pragma once

// Applies drainOn (rules/health_rules.h) to each new dump. All state is in Slurm and on Nodes.
// Not thread-safe.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operator/nodes/node_reports.h"
#include "operator/rules/health_rules.h"
#include "operator/site/dumped_nodes.h"
#include "operator/site/node_changes.h"
#include "operator/site/site_nodes.h"

namespace slurmlet::op {

// For metrics.
struct HealthStatus {
  std::size_t drained = 0, limited = 0;  // limited: by maxUnhealthy
};

// Must outlive it.
struct HealthContext {
  std::function<MachineOf(const std::string& node)> machine_of;
  NodeReports& reports;
};

class HealthSync {
 public:
  HealthSync(HealthPolicy policy, HealthContext context, bool dry_run)
      : policy_(std::move(policy)), context_(std::move(context)), dry_run_(dry_run) {}

  // Appends to `changes` what a new dump requires in Slurm.
  void step(Now now, const SiteNodes& nodes, const DumpedNodes& dump,
            std::vector<NodeChange>& changes);
  // How the drain of the Node, as it was just read, ends; kNone: it does not.
  DrainAction confirms(const KubeNode& node, const SlurmNode& slurm, WallTime now) const;
  const HealthStatus& status() const { return status_; }

 private:
  std::vector<HealthFacts> facts(const SiteNodes& nodes, const DumpedNodes& dump) const;
  void apply(const HealthRuling& ruling, Now now, std::vector<NodeChange>& changes);

  HealthPolicy policy_;
  HealthContext context_;
  bool dry_run_;
  HealthStatus status_;
};

}  // namespace slurmlet::op
