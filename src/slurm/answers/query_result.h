#pragma once

// What a query comes to: the records of nodes, or why there are none. Plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/facts.h"

namespace slurmlet::slurm {

struct QueryFailure {
  node::SlurmFailure cause = node::SlurmFailure::kInvalidResponse;
  std::string detail;  // one line; stable words without times and counters (it is shown in the API)
  bool operator==(const QueryFailure&) const = default;
};

// What is read from an answer of Slurm in any form; what the form does not say is left empty.
struct NodesAnswer {
  std::vector<node::SlurmNodeRecord> nodes;
  std::optional<QueryFailure> failure;  // no usable answer at all; then there are no nodes
  std::string api_version;              // "v0.0.44" as the answer says
  std::string slurm_version;            // of what answered, "25.11.8-0pre1"
  std::string cluster;
  std::optional<std::int64_t> last_update;  // slurmctld's time of the answer, Unix seconds
  bool no_nodes = false;                    // an empty list of them, and no error
  std::vector<std::string> not_understood;  // for people: "nodes[0].state: FROBNICATED"
};

// Of a query about one node. Exactly one of record and failure is set.
struct QueryResult {
  std::optional<node::SlurmNodeRecord> record;
  std::optional<QueryFailure> failure;
  std::optional<WallTime> as_of = {};  // when slurmctld said so, if that was not just now
  // Of records of slurmlet-operator: when to judge it again, and how long from as_of on it counts.
  std::optional<Duration> next_in = {};
  std::optional<Duration> valid_for = {};
};

}  // namespace slurmlet::slurm
