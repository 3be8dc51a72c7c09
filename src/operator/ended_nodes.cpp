#include "operator/ended_nodes.h"

#include <algorithm>

#include "operator/rules/drain_rules.h"

namespace slurmlet::op {
namespace {

// Rather too many than too few.
bool may_be_of(const kube::Machine& machine, const std::string& slurm_node) {
  const auto is_it = [label = first_label(slurm_node)](const std::string& name) {
    return first_label(name) == label;
  };
  return !machine.deleted_at &&
         (is_it(machine.name) || is_it(machine.node) ||
          std::any_of(machine.addresses.begin(), machine.addresses.end(), is_it));
}

}  // namespace

bool EndedNodes::is_gone(const std::string& machine_uid, const SiteView& site,
                         SteadyTime now) const {
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const auto& entry) {
    return entry.second.machine_uid == machine_uid;
  });
  if (found == ended_.end()) {
    return false;
  }
  const Now& at = found->second.at;
  const DumpReport& dump = site.dump.report();
  if (dump.dumped_at > at.wall) {
    return !site.dump.nodes().contains(found->first);
  }
  return now == at.steady || (dump.no_nodes && dump.failed_at > at.wall);
}

std::vector<EndedNodes::CameBack> EndedNodes::look(const SiteView& site, const Machines& machines,
                                                   SteadyTime now) {
  std::erase_if(ended_, [&](const auto& entry) {
    const auto& [name, ended] = entry;
    return now >= ended.at.steady + kMayComeBack ||
           std::any_of(machines.begin(), machines.end(),
                       [&](const auto& machine) { return may_be_of(machine.second, name); });
  });
  std::vector<CameBack> out;
  for (const auto& [name, ended] : ended_) {
    const SlurmNode* node = site.dump.find(name);
    if (node == nullptr || !node->state.has("DYNAMIC_NORM") ||
        !claimants(site.by_slurm, *node).empty()) {
      continue;
    }
    // Only what was drained for us first is ours to delete.
    const bool drained = node->state.has("DRAIN");
    const bool dead = drained && is_dead(node->state) && is_drain_of_ours(node->reason);
    if (dead || !drained) {
      KubeNode stand_in;
      stand_in.name = stand_in.slurm_node = name;
      stand_in.uid = ended.machine_uid;
      out.push_back({std::move(stand_in), dead});
    }
  }
  return out;
}

}  // namespace slurmlet::op
