#pragma once

// What the last answer of slurmctld and the local evidence say together. An answer about one node
// leaves open what AnswerKind says; steps that run here, PrologFlags=Contain and the last full dump
// settle it, or it is unknown. That no step runs here settles nothing: an allocation without steps
// (salloc, a multi-node job between steps) leaves no trace on the machine. Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "node/facts.h"

namespace slurmlet::node {

enum class Knowledge {
  kKnown,       // record is fresh enough to report
  kUnknown,     // not known; `reason` and `message` say why
  kNotAskedYet  // the first query is still out
};

enum class Use { kUnknown, kFree, kBusy };

struct SlurmView {
  Knowledge knowledge = Knowledge::kNotAskedYet;
  std::string reason;  // CamelCase, why not kKnown, or why there are several `bases`
  std::string message;
  std::string what = {}, cure = {};  // kUnknown: of what `message` is made
  std::set<std::string> bases = {};  // kKnown: what the base state may be; one where it is known
  // Jobs hold this node or complete on it, by Slurm's word or the machine's.
  Use use = Use::kUnknown;

  bool may_be(const std::string& base) const { return bases.contains(base); }
  bool is(const std::string& base) const { return may_be(base) && bases.size() == 1; }
};

SlurmView slurm_view(const HostFacts& facts);

// Of the last record; the base state is UNKNOWN where there are several that it may be.
SlurmState known_state(const HostFacts& facts);

// A full dump would say more than `facts` do without one.
bool needs_confirmation(const HostFacts& facts);

// The machine itself tells what jobs that began here, or ended beside others, make of the state, so
// that slurmctld need not be asked because of them: steps run, every job has one here from its
// start to its end (PrologFlags=Contain), and their cores are seen. When the last job has ended
// slurmctld must be asked: it ends the steps of a node that it sets down, too.
bool jobs_tell_state(const HostFacts& facts);

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
