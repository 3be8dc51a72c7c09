#pragma once

// Machines whose hosts `slurmlet-operator power suspend` has switched off (rules/power_rules.h):
// their Nodes say so in a condition, and the mark that keeps Cluster API from remediating them goes
// once they are back. All state is on Machines and Nodes.
//
// A step object; its calls to the API servers block. Not thread-safe.

#include <functional>
#include <map>
#include <string>

#include "base/keyed_backoff.h"
#include "kube/api.h"
#include "operator/machines/machine_place.h"
#include "operator/rules/power_rules.h"

namespace slurmlet::op {

// Must outlive it.
struct SleepingContext {
  kube::MachineApi& machines;
  kube::NodeApi& nodes;
  std::function<bool()> may_act;  // checked before each call
};

class SleepingMachines {
 public:
  SleepingMachines(SleepingContext context, bool dry_run)
      : context_(std::move(context)), dry_run_(dry_run) {}

  SteadyTime step(Now now, const SiteNodes& nodes, const DumpedNodes& dump,
                  const Machines& machines);
  std::size_t count() const { return seen_at_.size(); }

 private:
  // Returns whether it has called an API server.
  bool visit(const kube::Machine& machine, const KubeNode& node, const SlurmNode& slurm, Now now);
  bool note(const std::string& key, const std::string& what, const Status& done, SteadyTime now);

  SleepingContext context_;
  bool dry_run_;
  SteadyTime look_at_{};
  std::map<std::string, SteadyTime> seen_at_;  // marked Machines
  KeyedBackoff failed_{std::chrono::seconds{10}, std::chrono::minutes{5}};
};

}  // namespace slurmlet::op
