#pragma once

// The jobs of a cluster, by one `squeue` for all: squeue filters by itself, and slurmctld is
// queried for all jobs in any case. Pure.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

struct QueuedJob {
  std::string
      id;  // "7"; of an array's task "7_2"; of a component of a heterogeneous job its leader's
  bool completing = false;
  bool can_requeue = false;      // scontrol requeue takes it
  std::optional<WallTime> ends;  // by its time limit; nothing: it has none
  bool operator==(const QueuedJob&) const = default;
};

using JobsByNode = std::map<std::string, std::vector<QueuedJob>>;

// Of this cluster only, all partitions. Jobs that have ended are not in the answer; suspended ones
// are.
CommandSpec squeue_query(const ClientSettings& settings);
// The lines of an answer, views into it; an Error where the answer is not whole.
Result<std::vector<std::string_view>> squeue_lines(const CommandOutput& output);
// The jobs on each of `nodes`. An Error when the answer cannot be relied upon; in stable words.
Result<JobsByNode> read_squeue(const CommandOutput& output, const std::set<std::string>& nodes);

}  // namespace slurmlet::slurm
