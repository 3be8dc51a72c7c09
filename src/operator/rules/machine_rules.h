#pragma once

// When a Machine that is being deleted may go. Cluster API waits for our hook on it
// (pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet). It is removed only where a full
// dump of this cluster shows all Slurm nodes of the Machine's host drained and without a job, and
// squeue, begun after that dump, names no job there; or where no host was ever provisioned for the
// Machine. That Slurm has no node of the host releases nothing: it may be another cluster's, or be
// filtered out. What is not known counts as a job. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

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
  // Why nothing follows from what is known; "" when all is well.
  std::string unclear;
  bool never_provisioned = false;
  KubeNode node;                        // its Node, or what stands for one that is not there
  std::vector<const SlurmNode*> slurm;  // all of its host, by the last dump
  std::optional<NodeJobs> jobs;         // on all of them, by a squeue that began after that dump
  DrainPolicy policy;
  std::optional<WallTime> now;  // by the server that has the Machine; nothing: not known
};

enum class MachineAction : std::uint8_t {
  kNone,     // it is not being deleted, or does not wait for us
  kWait,     // nothing is to be done now
  kDrain,    // Slurm nodes
  kEndJobs,  // requeue or cancel what runs
  kRelease,  // remove the hook
};

struct MachineRuling {
  MachineAction action = MachineAction::kNone;
  std::string why;  // for people; "" = what was said before still holds
  std::map<std::string, std::string> drains = {};  // Slurm node → Reason
  bool operator==(const MachineRuling&) const = default;
};

MachineRuling rule_machine(const MachineFacts& facts);

// Whether the record of a dynamic node is to be deleted in Slurm: its Machine was released, and its
// slurmd has gone since.
bool is_left_behind(const SlurmNode& slurm);

}  // namespace slurmlet::op
