#pragma once

// Drains the Slurm nodes of cordoned Nodes, and ends the drains that a cordon or a Machine has left
// (rules/drain_rules.h). All state is in Slurm and in the Node's note of a drain. Not thread-safe;
// its calls to the API server block.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/api.h"
#include "operator/nodes/node_reports.h"
#include "operator/rules/drain_rules.h"

namespace slurmlet::op {

// Must outlive it.
struct CordonContext {
  kube::SiteApi& site;
  SiteNodes& nodes;
  const DumpedNodes& dump;
  NodeReports& reports;
  std::function<MachineOf(const std::string& node)> machine_of;
  std::function<bool()> may_act;  // checked before each call
  const Clock& clock;
};

class CordonSync {
 public:
  CordonSync(CordonContext context, bool dry_run)
      : context_(std::move(context)), dry_run_(dry_run) {}

  // The change that the Node's cordon, or its end, requires; nothing if none, or if it is not
  // allowed.
  std::optional<NodeChange> change(const KubeNode& node, const SlurmNode& slurm, Now now) const;
  // Appends to `changes` what a new dump requires in Slurm. A drain's note is written before it,
  // and removed after its end is in a dump.
  void step(Now now, std::vector<NodeChange>& changes);

 private:
  void annotate(const KubeNode& node, const std::string& note, Now now);

  CordonContext context_;
  bool dry_run_;
  SteadyTime notes_from_{};  // after a failed annotation
};

}  // namespace slurmlet::op
