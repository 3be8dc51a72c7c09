#include "operator/rules/machine_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rfc3339.h"
#include "base/text.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

std::optional<WallTime> end_of_wait(const MachineFacts& facts) {
  switch (facts.policy.kind) {
    case DrainPolicy::Kind::kWait:
      return std::nullopt;
    case DrainPolicy::Kind::kDeadline:
      return *facts.deleted_at +
             std::chrono::duration_cast<WallTime::duration>(facts.policy.deadline);
    case DrainPolicy::Kind::kNow:
      return *facts.deleted_at;
  }
  return std::nullopt;
}

std::string names_of(const std::vector<const SlurmNode*>& nodes) {
  std::string names;
  for (const SlurmNode* node : nodes) {
    names += (names.empty() ? "" : ",") + node->name;
  }
  return names;
}

MachineRuling with_jobs(const MachineFacts& facts) {
  const NodeJobs& jobs = *facts.jobs;
  const std::string nodes = names_of(facts.slurm);
  if (jobs.running == 0) {
    return {MachineAction::kWait, fmt::format("squeue lists no job, but Slurm node {} is still {}",
                                              nodes, facts.slurm.front()->state.raw())};
  }
  const auto until = end_of_wait(facts);
  std::string why = counted(jobs.running, "job") + " on Slurm node " + nodes;
  if (until && facts.now && *facts.now >= *until) {
    return {MachineAction::kEndJobs, why + " to be requeued or cancelled"};
  }
  why += jobs.limited ? ", the last ends at " + rfc3339(jobs.last_ends) + " by its time limit"
                      : ", at least one without a time limit";
  if (until) {
    why += "; what is left at " + rfc3339(*until) + " is requeued or cancelled";
  }
  return {MachineAction::kWait, why};
}

// Returns nothing if all are drained.
std::optional<MachineRuling> drain_first(const MachineFacts& facts) {
  MachineRuling drains{MachineAction::kDrain, ""};
  for (const SlurmNode* node : facts.slurm) {
    const DrainRuling ruling = rule_drain(facts.node, *node, MachineOf::kDeleting);
    if (!ruling.waits_for.empty()) {
      return MachineRuling{MachineAction::kWait,
                           "Slurm node " + node->name + " is not drained: " + ruling.waits_for};
    }
    if (ruling.action == DrainAction::kDrain) {
      drains.why += (drains.why.empty() ? "" : ",") + node->name;
      drains.drains.emplace(node->name, ruling.text);
    }
  }
  if (drains.drains.empty()) {
    return std::nullopt;
  }
  drains.why = "Slurm node " + drains.why + " is to be drained";
  return drains;
}

// A node that slurmctld reboots or powers off comes back without the drain.
std::string may_end_drain(const MachineFacts& facts) {
  for (const SlurmNode* node : facts.slurm) {
    for (const char* flag : {"REBOOT_REQUESTED", "REBOOT_ISSUED", "POWER_DOWN", "POWERING_DOWN"}) {
      if (node->state.has(flag)) {
        return fmt::format("Slurm node {} is {}, which may end the drain", node->name, flag);
      }
    }
  }
  return "";
}

}  // namespace

MachineRuling rule_machine(const MachineFacts& facts) {
  if (!facts.hooked || !facts.deleted_at) {
    return {};
  }
  if (!facts.unclear.empty()) {
    return {MachineAction::kWait, facts.unclear};
  }
  if (facts.never_provisioned) {
    return {MachineAction::kRelease, "no host was provisioned for it"};
  }
  if (facts.slurm.empty()) {
    return {
        MachineAction::kWait,
        "Slurm has no node of its host that is known here, which does not show that no job runs "
        "there; if none does, remove the hook: kubectl annotate machine " +
            std::string{node::vocabulary::kMachineHook} + "-"};
  }
  if (auto drains = drain_first(facts)) {
    return *std::move(drains);
  }
  if (!facts.jobs) {
    return {MachineAction::kWait, ""};
  }
  if (std::string why = may_end_drain(facts); !why.empty()) {
    return {MachineAction::kWait, std::move(why)};
  }
  if (facts.jobs->running + facts.jobs->completing > 0 ||
      std::ranges::any_of(facts.slurm, [](const SlurmNode* node) { return node->is_busy(); })) {
    return with_jobs(facts);
  }
  return {MachineAction::kRelease, "no job is left on Slurm node " + names_of(facts.slurm)};
}

// A slurmd that still runs would register the node again, without the drain.
bool is_left_behind(const SlurmNode& slurm) {
  return slurm.state.has("DYNAMIC_NORM") && slurm.state.has("DRAIN") &&
         slurm.state.base == "DOWN" && slurm.state.has("NOT_RESPONDING") &&
         !slurm.state.has("COMPLETING") && is_machine_reason(slurm.reason);
}

}  // namespace slurmlet::op
