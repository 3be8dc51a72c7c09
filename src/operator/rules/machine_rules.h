#pragma once

// Decides when a deleted Machine is released. Cluster API waits for our hook
// (pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet), which is removed only if a dump
// shows all Slurm nodes of the host drained and idle and a later squeue lists no job there, or if
// no host was ever provisioned. A host without Slurm nodes is not released, since it may be another
// cluster's or hidden from us. Missing facts count as jobs. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/rules/drain_rules.h"

namespace slurmlet::op {

// How jobs on the nodes of a deleted Machine are ended.
struct DrainPolicy {
  enum class Kind : std::uint8_t { kWait, kDeadline, kNow };
  Kind kind = Kind::kWait;  // kWait: they end by themselves
  Duration deadline{};      // after the deletion
  bool operator==(const DrainPolicy&) const = default;
};

struct NodeJobs {
  std::size_t running = 0, completing = 0;
  bool limited = true;  // all have a time limit
  WallTime last_ends{};
};

struct MachineFacts {
  bool hooked = false;
  std::optional<WallTime> deleted_at;
  // Why the facts are not reliable; "" = they are.
  std::string unclear;
  bool never_provisioned = false;
  KubeNode node;                        // its Node, or a placeholder
  std::vector<const SlurmNode*> slurm;  // all of its host, in the last dump
  std::optional<NodeJobs> jobs;         // on all of them, by a squeue after that dump
  DrainPolicy policy;
  std::optional<WallTime> now;  // by the Machines' server; nothing: not known
};

enum class MachineAction : std::uint8_t {
  kNone,     // not being deleted, or without our hook
  kWait,     // no action now
  kDrain,    // drain Slurm nodes
  kEndJobs,  // requeue or cancel running jobs
  kRelease,  // remove the hook
};

struct MachineRuling {
  MachineAction action = MachineAction::kNone;
  std::string why;                                 // for people; "" = unchanged
  std::map<std::string, std::string> drains = {};  // Slurm node → Reason
  bool operator==(const MachineRuling&) const = default;
};

MachineRuling rule_machine(const MachineFacts& facts);

// Whether to delete a dynamic Slurm node: its Machine was released and its slurmd has ended.
bool is_left_behind(const SlurmNode& slurm);

}  // namespace slurmlet::op
