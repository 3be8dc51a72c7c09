#pragma once

// A cordon drains, and so does the deletion of the Node's Machine; an uncordon ends the drain of a
// cordon, the host's next Machine that of a deletion, and nothing else does either. A drain is ours
// by its Reason, "slurmlet: cordoned" or "slurmlet: machine deleted [UID of the Node]", also where
// slurmctld has added to it (" : Not responding"). Every other drain is an administrator's, or
// Slurm's own, and is neither overwritten nor undone.
//
// Slurm has one Reason for DOWN, FAIL and DRAIN. A node that is DOWN or FAIL for a Reason of its
// own keeps it while a cordon drains it; that the drain is ours stands in the Node's annotation
// slurmlet.io/drain then, and holds as long as the Reason is the one noted there. Pure.

#include <string>
#include <string_view>

#include "operator/rules/matching.h"
#include "operator/rules/site.h"

namespace slurmlet::op {

enum class DrainAction : std::uint8_t {
  kNone,
  kNote,       // write the annotation slurmlet.io/drain first; "" removes it
  kDrain,      // state=drain
  kUndrain,    // state=undrain: ends DRAIN alone
  kResume,     // state=resume: ends DOWN, too
  kFail,       // state=fail: what the drain had replaced
  kSetReason,  // the drain has ended, and its Reason is left: since 23.11 it cannot be empty
  kDelete,     // the record of a dynamic node (machine_rules.h)
};

// What is known of the Machine of a Node.
enum class MachineOf : std::uint8_t {
  kNone,     // there is none, or it is not known
  kLives,    // it is not being deleted
  kDeleting  // it is, and our hook holds that up
};

struct DrainRuling {
  DrainAction action = DrainAction::kNone;
  std::string text = {};       // the Reason, or of kNote the annotation
  std::string waits_for = {};  // why nothing is done although something is wanted; for people
  bool operator==(const DrainRuling&) const = default;
};

// Whether it cannot be taken back: jobs may start at once where a drain ends.
bool is_final(DrainAction action);

inline constexpr std::string_view kCordonReason = "slurmlet: cordoned";
std::string machine_reason(const KubeNode& node);
bool is_drain_of_ours(std::string_view reason);
// Of a deletion's drain, whatever the Node.
bool is_machine_reason(std::string_view reason);

// What the annotation slurmlet.io/drain holds, as one line of JSON.
struct DrainNote {
  std::string slurm_node;
  std::string state;   // "DOWN" or "FAIL": before the drain
  std::string reason;  // with which it is drained
  bool operator==(const DrainNote&) const = default;
};
std::string to_annotation(const DrainNote& note);
// Empty fields where it is none.
DrainNote parse_drain_note(std::string_view text);

DrainRuling rule_drain(const KubeNode& node, const SlurmNode& slurm,
                       MachineOf machine = MachineOf::kNone);

}  // namespace slurmlet::op
