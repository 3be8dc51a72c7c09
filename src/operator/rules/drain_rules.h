#pragma once

// A cordon drains, and so does the deletion of the Node's Machine; an uncordon undrains what a
// cordon drained, the next Machine's Node what the deletion drained, and nothing else does either.
// Whose drain it is stands in Slurm's Reason: "slurmlet: cordoned [UID]" and "slurmlet: machine
// deleted [UID]", with the uid of the Node, and ", was: REASON" behind it where there was another
// one, which comes back when the drain has ended. Drains with other Reasons are an administrator's
// (or Slurm's own) and are neither overwritten nor undone. Pure.

#include <string>
#include <string_view>

#include "operator/rules/matching.h"
#include "operator/rules/site.h"

namespace slurmlet::op {

enum class DrainAction { kNone, kDrain, kUndrain, kSetReason };

// What is known of the Machine of a Node.
enum class MachineOf : std::uint8_t {
  kNone,     // there is none, or it is not known
  kLives,    // it is not being deleted
  kDeleting  // it is, and our hook holds that up
};

struct DrainRuling {
  DrainAction action = DrainAction::kNone;
  std::string reason = {};     // of a drain, or instead of ours
  std::string waits_for = {};  // why nothing is done although a drain is wanted; for people
  bool operator==(const DrainRuling&) const = default;
};

// The Reasons of our drains for this Node.
std::string cordon_reason(const KubeNode& node);
std::string machine_reason(const KubeNode& node);
// Whether a Reason is that of a drain of ours, of whatever Node.
bool is_cordon_reason(std::string_view reason);
bool is_drain_of_ours(std::string_view reason);

DrainRuling rule_drain(const KubeNode& node, const SlurmNode& slurm,
                       MachineOf machine = MachineOf::kNone);

}  // namespace slurmlet::op
