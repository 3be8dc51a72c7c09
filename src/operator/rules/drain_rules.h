#pragma once

// A cordon drains, and so does the deletion of the Node's Machine. Only an uncordon ends the drain
// of a cordon, and only the host's next Machine that of a deletion. Our drains have the Reason
// "slurmlet: cordoned" or "slurmlet: machine deleted [UID of the Node]", to which slurmctld may
// append (" : Not responding"). Drains by administrators and Slurm are neither overwritten nor
// undone.
//
// Slurm has one Reason for DOWN, FAIL and DRAIN. A DOWN or FAIL node keeps its own Reason while a
// cordon drains it; the Node's annotation slurmlet.io/drain then marks the drain as ours, as long
// as the Reason is the one noted there. Pure.

#include <string>
#include <string_view>

#include "operator/rules/matching.h"
#include "operator/rules/site.h"

namespace slurmlet::op {

enum class DrainAction : std::uint8_t {
  kNone,
  kNote,       // write the annotation slurmlet.io/drain first; "" removes it
  kDrain,      // state=drain
  kUndrain,    // state=undrain: ends DRAIN only
  kResume,     // state=resume: also ends DOWN
  kFail,       // state=fail: restores FAIL after the drain
  kSetReason,  // replaces our Reason after a drain; since 23.11 it cannot be empty
  kDelete,     // deletes a dynamic node (machine_rules.h)
};

// The state of a Node's Machine.
enum class MachineOf : std::uint8_t {
  kNone,     // none, or not known
  kLives,    // not being deleted
  kDeleting  // being deleted, with our hook
};

struct DrainRuling {
  DrainAction action = DrainAction::kNone;
  std::string text = {};       // the Reason, or for kNote the annotation
  std::string waits_for = {};  // why a wanted action is not taken; for people
  bool operator==(const DrainRuling&) const = default;
};

// Whether the action cannot be undone: jobs may start as soon as a drain ends.
bool is_final(DrainAction action);

inline constexpr std::string_view kCordonReason = "slurmlet: cordoned";
inline constexpr std::string_view kUndrainedReason = "slurmlet: undrained";  // of no drain
// Of a condition of the Node (health_rules.h).
std::string health_reason(const KubeNode& node, std::string_view type, std::string_view text);
// The condition's type; "" = the Reason is not of a condition.
std::string health_type(std::string_view reason);
bool is_drained_for_health(const SlurmNode& slurm);
bool is_own_drain(std::string_view reason);
// Of an idle machine that is to go (scale_rules.h); " [UID of the Machine]" follows.
inline constexpr std::string_view kScaleReason = "slurmlet: scale-down";
bool is_scale_reason(std::string_view reason);
// True for a deletion's Reason with any Node's uid.
bool is_machine_reason(std::string_view reason);

// Content of the annotation slurmlet.io/drain, as one line of JSON.
struct DrainNote {
  std::string slurm_node;
  std::string state;   // before the drain: "DOWN" or "FAIL"
  std::string reason;  // of the drain
  bool operator==(const DrainNote&) const = default;
};
std::string to_annotation(const DrainNote& note);
// Fields are empty if `text` is no note.
DrainNote parse_drain_note(std::string_view text);

// How a drain of the operator ends that is not wanted any more.
DrainRuling end_own_drain(const SlurmNode& slurm);

DrainRuling rule_drain(const KubeNode& node, const SlurmNode& slurm,
                       MachineOf machine = MachineOf::kNone);

}  // namespace slurmlet::op
