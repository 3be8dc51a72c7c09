#pragma once

// All jobs of a cluster, by one squeue: what pending ones wait for and ask of nodes, and on which
// nodes there are others. Elements of an array are counted, not expanded. Pure.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "node/pending_job.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

// By slurmctld's reason.
node::WaitsFor waits_for(std::string_view reason);

struct JobQueue {
  std::vector<node::PendingJob> pending;  // those that are alike as one
  // With jobs that run, complete or are suspended; or for which a pending job waits by name.
  std::set<std::string> nodes;
};

CommandSpec queue_query(const ClientSettings& settings);
// An Error when the answer cannot be relied upon; in stable words.
Result<JobQueue> read_queue(const CommandOutput& output);

// Those that may run at once beside `running` ones of the same array: "1-50%10" → 10 (with 4: 6),
// "3,5,9" → 3, "0-10:2" → 6.
std::int64_t count_array(std::string_view tasks, std::int64_t running = 0);

}  // namespace slurmlet::slurm
