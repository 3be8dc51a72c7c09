#pragma once

// What a pending job of Slurm waits for, and what it asks of nodes. Values only.

#include <cstdint>
#include <string>
#include <vector>

namespace slurmlet::node {

// Whether more nodes would start a job, by slurmctld's reason.
enum class WaitsFor : std::uint8_t {
  kNodes,
  kOther,    // held, dependency, begin time, limits, licenses, …
  kUnknown,  // a reason that is not known here
};

// Or several that differ only in their id.
struct PendingJob {
  std::string id;      // of the first
  std::string reason;  // if it is not known
  WaitsFor waits_for = WaitsFor::kUnknown;
  std::int64_t count = 1;  // of an array the elements that may run at once
  std::vector<std::string> partitions;
  std::int64_t nodes = 1, cpus = 1;  // at least; of one element
  std::int64_t cpus_per_node = 1;    // at least
  std::int64_t memory_mib = 0;       // of one element
  std::int64_t gpus = 0, gpus_per_node = 0;
  bool exclusive = false;
  std::string features;  // the expression of --constraint
  bool operator==(const PendingJob&) const = default;
};

}  // namespace slurmlet::node
