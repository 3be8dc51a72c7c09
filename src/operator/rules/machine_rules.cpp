#include "operator/rules/machine_rules.h"

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "base/text.h"

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

MachineRuling with_jobs(const MachineFacts& facts) {
  const NodeJobs& jobs = *facts.jobs;
  const std::string& node = facts.dumped->name;
  if (jobs.running == 0) {
    return {MachineAction::kWait, fmt::format("jobs are completing on Slurm node {}, state {}",
                                              node, facts.dumped->state.raw())};
  }
  const auto until = end_of_wait(facts);
  std::string why = counted(jobs.running, "job") + " on Slurm node " + node;
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

}  // namespace

MachineRuling rule_machine(const MachineFacts& facts) {
  if (!facts.hooked || !facts.deleted_at) {
    return {};
  }
  if (!facts.unclear.empty()) {
    return {MachineAction::kWait, facts.unclear};
  }
  if (facts.dumped != nullptr) {
    const DrainRuling drain = rule_drain(facts.node, *facts.now_known, MachineOf::kDeleting);
    if (drain.action == DrainAction::kDrain) {
      return {MachineAction::kDrain, "Slurm node " + facts.dumped->name + " is to be drained"};
    }
    if (!drain.waits_for.empty()) {
      return {MachineAction::kWait,
              "Slurm node " + facts.dumped->name + " is not drained: " + drain.waits_for};
    }
    if (!facts.dumped->state.has("DRAIN")) {
      return {MachineAction::kWait, ""};  // the next dump tells what runs there
    }
  }
  if (!facts.jobs) {
    return {MachineAction::kWait, ""};
  }
  if (facts.dumped == nullptr) {
    return facts.jobs->running + facts.jobs->completing == 0
               ? MachineRuling{MachineAction::kRelease,
                               "Slurm has no node " + claimed_name(facts.node) + " that responds"}
               : MachineRuling{MachineAction::kWait, "Slurm has no node " +
                                                         claimed_name(facts.node) +
                                                         ", but squeue still shows jobs on it"};
  }
  const auto& state = facts.dumped->state;
  // What slurmctld reboots or powers off comes back without the drain.
  for (const char* flag : {"REBOOT_REQUESTED", "REBOOT_ISSUED", "POWER_DOWN", "POWERING_DOWN"}) {
    if (state.has(flag) || facts.now_known->state.has(flag)) {
      return {MachineAction::kWait, fmt::format("Slurm node {} is {}, which may end the drain",
                                                facts.dumped->name, flag)};
    }
  }
  if (state.base == "ALLOCATED" || state.base == "MIXED" || state.has("COMPLETING") ||
      facts.jobs->running + facts.jobs->completing > 0) {
    return with_jobs(facts);
  }
  // What an administrator drained keeps its record: his Reason would go with it.
  if (state.has("DYNAMIC_NORM") && is_drain_of_ours(facts.now_known->reason)) {
    return {MachineAction::kDeleteRecord,
            "dynamic node " + facts.dumped->name + " is to be deleted, as no job is left on it"};
  }
  return {MachineAction::kRelease, "no job is left on Slurm node " + facts.dumped->name};
}

}  // namespace slurmlet::op
