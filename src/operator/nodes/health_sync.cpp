#include "operator/nodes/health_sync.h"

#include <algorithm>
#include <utility>

namespace slurmlet::op {
namespace {

constexpr EventReason kUnhealthyNotDrained{"UnhealthyNotDrained", true};

}  // namespace

std::vector<HealthFacts> HealthSync::facts(const SiteNodes& nodes, const DumpedNodes& dump) const {
  std::vector<HealthFacts> out;
  for (const auto& [name, node] : nodes.all()) {
    const SlurmNode* slurm = dump.find(claimed_name(node));
    if (slurm != nullptr && !node.deleting && node.belongs == Belongs::kHere &&
        distrust(node, *slurm, claimants(nodes.by_slurm(), *slurm).size()).empty()) {
      out.push_back({&node, slurm, context_.machine_of(name)});
    }
  }
  return out;
}

void HealthSync::step(Now now, const SiteNodes& nodes, const DumpedNodes& dump,
                      std::vector<NodeChange>& changes) {
  if (policy_.drain_on.empty() || !nodes.known() || !dump.problem(now.wall).empty()) {
    return;
  }
  status_ = {};
  for (const auto& [name, slurm] : dump.nodes()) {
    status_.drained += is_drained_for_health(slurm) ? 1 : 0;
  }
  const auto known = facts(nodes, dump);
  for (const HealthRuling& ruling : rule_health(policy_, known, dump.nodes(), now.wall)) {
    apply(ruling, now, changes);
  }
}

void HealthSync::apply(const HealthRuling& ruling, Now now, std::vector<NodeChange>& changes) {
  const KubeNode& node = *ruling.facts->node;
  const std::string& slurm = ruling.facts->slurm->name;
  if (ruling.action == DrainAction::kNone) {
    ++status_.limited;
    context_.reports.node(
        node, kUnhealthyNotDrained,
        "Slurm node " + slurm + " is not drained although " + ruling.why + ": " + ruling.waits_for,
        now);
    return;
  }
  if (dry_run_) {
    context_.reports.node(node, kDryRun,
                          std::string{"would "} +
                              (ruling.action == DrainAction::kDrain ? "drain" : "undrain") +
                              " Slurm node " + slurm + ", as " + ruling.why,
                          now);
    return;
  }
  changes.push_back({slurm, ruling.action, ruling.reason, node.name, ruling.why});
}

DrainAction HealthSync::confirms(const KubeNode& node, const SlurmNode& slurm, WallTime now) const {
  const HealthFacts facts{&node, &slurm, context_.machine_of(node.name)};
  return rule_health_end(policy_, facts, now).action;
}

}  // namespace slurmlet::op
