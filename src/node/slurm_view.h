#pragma once

// What the last answer of slurmctld says, and where this machine knows better: steps that run here
// contradict an answer that it is idle. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "node/facts.h"

namespace slurmlet::node {

enum class Knowledge {
  kKnown,       // record is fresh enough to report
  kUnknown,     // not known; `reason` and `message` say why
  kNotAskedYet  // the first query is still out
};

struct SlurmView {
  Knowledge knowledge = Knowledge::kNotAskedYet;
  std::string reason;  // CamelCase, why not kKnown, or why `base` is ""
  std::string message;
  std::string what = {}, fix = {};  // kUnknown: of what `message` is made
  // kKnown: the base state; "" where a job has started since slurmctld said IDLE, and how much of
  // the node it has is not seen.
  std::string base = {};
  bool in_use = false;  // kKnown: jobs hold this node or complete on it

  bool is(const std::string& state) const { return base == state; }
};

SlurmView slurm_view(const HostFacts& facts);

// Of the last record, with what this machine knows better.
SlurmState known_state(const HostFacts& facts);

// What jobs hold on this node; nothing where that is not known.
struct Allocation {
  std::optional<std::int64_t> cpus;
  std::optional<std::int64_t> memory_bytes;
};

Allocation allocation(const HostFacts& facts);

// CPUs that Slurm gives to jobs, as it counts them: without those of CoreSpec. Nothing if unknown.
std::optional<std::int64_t> usable_cpus(const HostFacts& facts);

// "NOT_RESPONDING" → "NotResponding".
std::string camel_case(const std::string& slurm_word);

}  // namespace slurmlet::node
