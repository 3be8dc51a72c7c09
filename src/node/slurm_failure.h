#pragma once

// What is said of each cause why slurmctld gave no answer, and what follows from it. Pure.

#include "node/facts.h"

namespace slurmlet::node {

enum FailureTraits : unsigned {
  // Costs slurmctld nothing and ends by something that happens on this machine.
  kEndsHere = 1,
};

struct FailureKind {
  SlurmFailure failure;
  const char* name;    // in metrics, logs and records: "controller unreachable"
  const char* brief;   // in few words; conditions say it at length with the next three
  const char* reason;  // CamelCase
  const char* what;    // {slurmctld} names it, {host} is whose munge, clock or command it is
  const char* fix;
  unsigned traits = 0;

  bool has(FailureTraits trait) const { return (traits & trait) != 0; }
};

const FailureKind& kind_of(SlurmFailure failure);

inline const char* to_string(SlurmFailure failure) { return kind_of(failure).name; }

}  // namespace slurmlet::node
