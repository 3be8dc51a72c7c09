#pragma once

// What a query about one node comes to: the record of the node, or why there is none. Plain values.

#include <optional>
#include <string>

#include "base/clock.h"
#include "node/facts.h"

namespace slurmlet::slurm {

struct QueryFailure {
  node::SlurmFailure cause = node::SlurmFailure::kGarbage;
  std::string detail;  // one line; stable words without times and counters (it is shown in the API)
  bool operator==(const QueryFailure&) const = default;
};

// Exactly one of record and failure is set.
struct QueryResult {
  std::optional<node::SlurmNodeRecord> record;
  std::optional<QueryFailure> failure;
  std::optional<WallTime> as_of;  // when slurmctld said so, if that was not just now
  // Of sources that are free (NodeSource::is_free): when to ask again, and how long from as_of on
  // the record counts.
  std::optional<Duration> next_in = {};
  std::optional<Duration> valid_for = {};
};

}  // namespace slurmlet::slurm
