#pragma once

// When a Machine that is being deleted may go. Cluster API waits for our hook on it
// (pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet); it is removed only when a full
// dump shows the Slurm node drained and without a job, and squeue, begun after that dump, names no
// job there. What is not known counts as a job. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "operator/rules/drain_rules.h"

namespace slurmlet::op {

// What may be done to jobs on the node of a Machine that is being deleted.
struct DrainPolicy {
  enum class Kind : std::uint8_t { kWait, kDeadline, kNow };
  Kind kind = Kind::kWait;  // nothing: they end by themselves
  Duration deadline{};      // from the deletion on
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
  // Why nothing follows from what is known of Slurm; "" when all is well.
  std::string unclear;
  KubeNode node;  // its Node, or what stands for one that is not there
  // By the last full dump, and with what was learnt since; null: slurmctld knows no such node.
  const SlurmNode* dumped = nullptr;
  const SlurmNode* now_known = nullptr;
  std::optional<NodeJobs> jobs;  // by a squeue that began after that dump
  DrainPolicy policy;
  std::optional<WallTime> now;  // by the server that has the Machine; nothing: not known
};

enum class MachineAction : std::uint8_t {
  kNone,          // it is not being deleted, or does not wait for us
  kWait,          // nothing is to be done now
  kDrain,         // the Slurm node
  kEndJobs,       // requeue or cancel what runs
  kDeleteRecord,  // of a dynamic node
  kRelease,       // remove the hook
};

struct MachineRuling {
  MachineAction action = MachineAction::kNone;
  std::string why;  // for people; "" = what was said before still holds
  bool operator==(const MachineRuling&) const = default;
};

MachineRuling rule_machine(const MachineFacts& facts);

}  // namespace slurmlet::op
