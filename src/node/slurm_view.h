#pragma once

// What the last answer of slurmctld and the local evidence say together. A single-node answer of
// slurmctld has a live base state and flags, but its MIXED comes from a cache that may be minutes
// old; the machine knows better whether jobs run here. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "node/facts.h"

namespace slurmlet::node {

enum class Knowledge {
  kKnown,       // record is fresh enough to report
  kUnknown,     // cannot be told; `reason` and `message` say why
  kNotAskedYet  // the first question is still out
};

struct SlurmView {
  Knowledge knowledge = Knowledge::kNotAskedYet;
  std::string reason;  // CamelCase, for kUnknown and kNotAskedYet
  std::string message;
  std::string base;   // effective base state, kKnown only
  bool busy = false;  // jobs run or complete here, by Slurm's word or the machine's
};

SlurmView slurm_view(const HostFacts& facts);

// CPUs that Slurm gives to jobs, as it counts them: without those of CoreSpec. Nothing if unknown.
std::optional<std::int64_t> usable_cpus(const HostFacts& facts);

// "NOT_RESPONDING" → "NotResponding".
std::string camel_case(const std::string& slurm_word);

}  // namespace slurmlet::node
