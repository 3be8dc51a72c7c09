#pragma once

// What is known of the Machines of a MachineDeployment, for scale_rules.h. Pure.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/machines/machine_place.h"
#include "operator/machines/scale_policy.h"
#include "slurm/answers/pending.h"

namespace slurmlet::op {

// Of one squeue.
struct QueueFacts {
  slurm::JobQueue jobs;
  // Slurm nodes that the last dump before that squeue showed idle and drained by us.
  std::set<std::string> drained;
};

bool is_idle(const SlurmNode& slurm);          // and may be drained
bool is_leaving(const SlurmNode& slurm);       // drained by us
bool is_drained_idle(const SlurmNode& slurm);  // and idle

ScaleMachine scale_machine(const kube::Machine& machine, const MachinePlace& place,
                           const QueueFacts& queue, const ScalePolicy& policy, WallTime now);

// For people; "" = it is, up and down. `bare`: a Machine without our hook.
std::string why_not_scaled(const ScaleGroup& group, const std::string& bare);

// Of a partition with MachineDeployments.
struct PartitionStatus {
  std::int64_t jobs = 0, nodes = 0, gpus = 0;  // that wait for nodes
  std::int64_t idle = 0, allocated = 0;        // nodes
};

struct ScaleStatus {
  struct Group {
    std::string name;
    std::set<std::string> partitions;
    std::int64_t wanted = 0, replicas = 0, max = 0, late = 0;
  };
  std::map<std::string, PartitionStatus> partitions;
  std::vector<Group> groups;
  std::int64_t too_large = 0;
  std::map<std::string, std::int64_t> unknown_reasons;
  std::uint64_t ups = 0, downs = 0, failures = 0;
  std::string problem;
};

void count_jobs(const slurm::JobQueue& queue, ScaleStatus& status);
void count_nodes(const SlurmNodes& nodes, ScaleStatus& status);

}  // namespace slurmlet::op
