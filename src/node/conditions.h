#pragma once

// The Node's conditions from the facts: one small rule per condition. Pure.
//
// A fixed core is always present so that health checks can rely on it: the kubelet's four,
// NetworkUnavailable, SlurmdReady and SlurmNodeState{Idle,Mixed,Allocated,Completing,Drain,Down,
// Fail,Maintenance,NotResponding,InvalidReg}; further states and flags of Slurm appear while true,
// GPUHealthy where Slurm has GPUs (gpu_health.h). docs/reference/conditions.md explains each of
// them. Messages hold no value that changes by the minute: every change is an API write.

#include <string>
#include <vector>

#include "node/facts.h"
#include "node/node.h"
#include "node/policy.h"

namespace slurmlet::node {

// What the loops know beyond the facts.
struct ReadyContext {
  bool slurmd_grace_over = true;  // slurmd has been away for longer than the grace period
  bool shutting_down = false;     // the host is going down
  bool operator==(const ReadyContext&) const = default;
};

Condition ready_condition(const HostFacts& facts, const NodePolicy& policy,
                          const ReadyContext& ready_context);
Condition slurmd_condition(const HostFacts& facts);
std::vector<Condition> machine_conditions(const MachineFacts& machine);
// Of the policy only publish_job_ids counts.
std::vector<Condition> slurm_state_conditions(const HostFacts& facts,
                                              const NodePolicy& policy = {});

// Whether slurmd was seen to run on this machine, as a process.
bool runs_here(const SlurmdFacts& slurmd);

// ' by root since 2026-11-20T14:02:11Z: "bad dimm"', as far as known; of the reason at most
// 512 bytes. Slurm keeps the reason of a state after it is over, so use it only with a state that
// the reason explains.
std::string attribution(const SlurmNodeRecord& record);

// "RESUME" or "DOWN" (scontrol reboot nextstate=), "" if Slurm names no state after a reboot.
// Releases differ: "RESUME", "UNKNOWN+UNDRAIN+RESUME", "INVALID" for none.
std::string next_state(const SlurmNodeRecord& record);

}  // namespace slurmlet::node
