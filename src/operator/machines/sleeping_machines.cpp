#include "operator/machines/sleeping_machines.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/rfc3339.h"

namespace slurmlet::op {
namespace {

constexpr int kMostCalls = 2;
constexpr Duration kNextLook = std::chrono::seconds{1};  // each is at all Machines

node::NodePatch patch_of(const KubeNode& node, const std::optional<node::Condition>& condition,
                         WallTime now) {
  node::NodePatch patch;
  patch.uid = node.uid;
  patch.has_changes = true;
  if (!condition) {
    patch.removed_conditions.insert(kAsleep);
    return patch;
  }
  const auto* old = node.condition(kAsleep);
  patch.conditions.push_back(
      {*condition, rfc3339(now), old == nullptr ? rfc3339(now) : old->last_transition_time});
  return patch;
}

}  // namespace

SteadyTime SleepingMachines::step(Now now, const SiteNodes& nodes, const DumpedNodes& dump,
                                  const Machines& machines) {
  if (now.steady < look_at_) {
    return look_at_;
  }
  look_at_ = now.steady + kNextLook;
  const auto is_asleep = [](const kube::Machine& machine) {
    return machine.sleeping && !machine.deleted_at;
  };
  const auto is_known = [&](const std::string& key) {
    const auto found = machines.find(key);
    return found != machines.end() && is_asleep(found->second);
  };
  std::erase_if(seen_at_, [&](const auto& entry) { return !is_known(entry.first); });
  failed_.retain(is_known);
  int calls = kMostCalls;
  SteadyTime next = kNever;
  for (const auto& [key, machine] : machines) {
    if (!is_asleep(machine)) {
      continue;
    }
    // A dump from before the mark shows the node as in service.
    const SteadyTime since = seen_at_.try_emplace(key, now.steady).first->second;
    const KubeNode* node = node_of(machine, nodes);
    const SlurmNode* slurm = node == nullptr ? nullptr : dump.find(claimed_name(*node));
    if (slurm == nullptr || node->belongs != Belongs::kHere || dump.counters().began <= since ||
        !dump.problem(now.wall).empty() ||
        !distrust(*node, *slurm, claimants(nodes.by_slurm(), *slurm).size()).empty()) {
      continue;
    }
    if (!failed_.may_try(key, now.steady)) {
      next = std::min(next, failed_.not_before(key));
    } else if (calls == 0) {
      next = look_at_;
    } else if (visit(machine, *node, *slurm, now)) {
      --calls;
    }
  }
  return next;
}

bool SleepingMachines::visit(const kube::Machine& machine, const KubeNode& node,
                             const SlurmNode& slurm, Now now) {
  const auto condition = rule_sleep(node, slurm);
  const auto* old = node.condition(kAsleep);
  const bool differs = condition ? old == nullptr || old->condition != *condition : old != nullptr;
  if ((!differs && condition) || !context_.may_act()) {
    return false;
  }
  const std::string key = key_of(machine);
  if (dry_run_) {
    log::debug("dry run: Machine " + key + (condition ? " sleeps" : " is awake"));
    return false;
  }
  if (differs) {
    const auto written =
        context_.nodes.patch_status(node.name, patch_of(node, condition, now.wall));
    return note(key, "condition SlurmNodeAsleep of Node " + node.name,
                written ? Status{} : written.error(), now.steady);
  }
  const Status done = context_.machines.mark_awake(machine);
  if (done) {
    log::info("Machine " + key + " is awake");
  }
  return note(key, "the mark of Machine " + key, done, now.steady);
}

bool SleepingMachines::note(const std::string& key, const std::string& what, const Status& done,
                            SteadyTime now) {
  if (done) {
    failed_.forget(key);
    return true;
  }
  if (!failed_.has_failed(key) && done.error().code != Code::kConflict) {
    log::warning(what + " was not written: " + done.error().message);
  }
  failed_.failed(key, now);
  return true;
}

}  // namespace slurmlet::op
