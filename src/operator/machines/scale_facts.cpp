#include "operator/machines/scale_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/vocabulary.h"
#include "operator/rules/drain_rules.h"
#include "slurm/answers/record_text.h"

namespace slurmlet::op {
namespace {

using State = ScaleMachine::State;

constexpr std::size_t kMostReasons = 20;  // in metrics

// But for flags that say nothing of a node's use, and `but_for`.
bool is_free(const node::SlurmState& state, std::string_view but_for = {}) {
  return state.base == "IDLE" && std::ranges::all_of(state.flags, [&](const std::string& flag) {
           return flag == "DYNAMIC_NORM" || flag == "DYNAMIC_FUTURE" || flag == "CLOUD" ||
                  flag == but_for;
         });
}

// By Slurm's power saving, which wakes it by itself.
bool is_asleep(const node::SlurmState& state) {
  return std::ranges::any_of(state.flags,
                             [](const std::string& flag) { return flag.starts_with("POWER"); });
}

bool may_come(const node::SlurmState& state) {
  return !state.has("DRAIN") && !state.has("FAIL") && !is_asleep(state) &&
         (state.base == "DOWN" || state.base == "UNKNOWN" || state.base == "FUTURE" ||
          state.has("NOT_RESPONDING"));
}

Duration idle_for(const MachinePlace& place, WallTime now) {
  Duration least = Duration::max();
  for (const SlurmNode* slurm : place.slurm) {
    const auto record = slurm::read_record_text(slurm->text);
    if (!is_idle(*slurm) || !record || !record->last_busy) {
      return {};  // planned, or not known
    }
    least = std::min<Duration>(least, now - *record->last_busy);
  }
  return least;
}

State state_of(const kube::Machine& machine, const MachinePlace& place, const QueueFacts& queue,
               const ScalePolicy& policy, WallTime now) {
  const auto& slurm = place.slurm;
  const auto all = [&](const auto& is) {
    return std::ranges::all_of(slurm, [&](const SlurmNode* node) { return is(*node); });
  };
  if (place.is_elsewhere) {
    return State::kInUse;
  }
  const bool is_young = machine.created_at && now - *machine.created_at < policy.boot_timeout;
  if (slurm.empty() || all([](const SlurmNode& node) { return may_come(node.state); })) {
    return is_young ? State::kBooting : State::kLate;
  }
  if (!place.unclear.empty() || place.node.unschedulable) {
    return State::kInUse;
  }
  if (std::ranges::any_of(slurm, [](const SlurmNode* node) { return is_leaving(*node); })) {
    const bool has_left = all([&](const SlurmNode& node) {
      return is_drained_idle(node) && queue.drained.contains(node.name);
    });
    return has_left ? State::kLeft : State::kLeaving;
  }
  // For a pending job, which counts as demand.
  const auto may_be_planned = [](const SlurmNode& node) { return is_free(node.state, "PLANNED"); };
  return all(may_be_planned) ? State::kIdle : State::kInUse;
}

}  // namespace

bool is_idle(const SlurmNode& slurm) { return is_free(slurm.state); }

bool is_leaving(const SlurmNode& slurm) {
  return slurm.state.has("DRAIN") && is_scale_reason(slurm.reason);
}

bool is_drained_idle(const SlurmNode& slurm) {
  return is_free(slurm.state, "DRAIN") && is_leaving(slurm);
}

ScaleMachine scale_machine(const kube::Machine& machine, const MachinePlace& place,
                           const QueueFacts& queue, const ScalePolicy& policy, WallTime now) {
  ScaleMachine out{.name = key_of(machine)};
  out.marked = machine.delete_mark == node::vocabulary::kDeleteMachineBy;
  out.may_go =
      machine.hooked && !machine.controller && (out.marked || !machine.delete_mark.has_value());
  out.has_job = std::ranges::any_of(place.slurm, [&](const SlurmNode* node) {
    return queue.jobs.nodes.contains(node->name) || node->is_busy();
  });
  out.state = state_of(machine, place, queue, policy, now);
  if (out.state == State::kIdle && out.has_job) {
    out.state = State::kInUse;
  }
  if (out.state == State::kIdle) {
    out.idle_for = idle_for(place, now);
  }
  return out;
}

std::string why_not_scaled(const ScaleGroup& group, const std::string& bare) {
  if (!group.size && !group.partitions.empty()) {
    return "is not scaled up: what one machine brings is not known; set the annotation "
           "capacity.cluster-autoscaler.kubernetes.io/cpu";
  }
  return bare.empty() ? ""
                      : fmt::format(
                            "is not scaled down: Machine {} has no annotation {}, so that nothing "
                            "protects its jobs",
                            bare, node::vocabulary::kMachineHook);
}

void count_jobs(const slurm::JobQueue& queue, ScaleStatus& status) {
  status.unknown_reasons.clear();
  for (const auto& job : queue.pending) {
    if (job.waits_for == node::WaitsFor::kUnknown && status.unknown_reasons.size() < kMostReasons) {
      status.unknown_reasons[job.reason] += job.count;
    }
    if (job.waits_for != node::WaitsFor::kNodes) {
      continue;
    }
    for (const auto& name : job.partitions) {
      if (const auto found = status.partitions.find(name); found != status.partitions.end()) {
        found->second.jobs += job.count;
        found->second.nodes += job.count * job.nodes;
        found->second.gpus += job.count * job.gpus;
      }
    }
  }
}

void count_nodes(const SlurmNodes& nodes, ScaleStatus& status) {
  for (const auto& [name, slurm] : nodes) {
    const bool idle = is_idle(slurm);
    const bool allocated = slurm.state.base == "ALLOCATED" || slurm.state.base == "MIXED";
    for (const auto& partition : slurm.partitions) {
      const auto found = status.partitions.find(partition);
      if (found != status.partitions.end()) {
        found->second.idle += idle ? 1 : 0;
        found->second.allocated += allocated ? 1 : 0;
      }
    }
  }
}

}  // namespace slurmlet::op
