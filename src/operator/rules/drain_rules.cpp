#include "operator/rules/drain_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace slurmlet::op {
namespace {

constexpr std::string_view kMachineDeleted = "slurmlet: machine deleted";
constexpr std::string_view kOurs = "slurmlet: ";
constexpr std::size_t kLongestText = 200;     // of a condition
constexpr std::string_view kAdded = " : ";    // by slurmctld, to an existing Reason
constexpr std::string_view kWas = ", was: ";  // of 0.1, before an administrator's Reason

// A Node's uid may follow `word` (in 0.1 always).
bool is_reason(std::string_view reason, std::string_view word) {
  if (!reason.starts_with(word)) {
    return false;
  }
  reason.remove_prefix(word.size());
  if (const auto end = reason.find(']'); reason.starts_with(" [") && end != reason.npos) {
    reason.remove_prefix(end + 1);
  }
  return reason.empty() || reason.starts_with(kAdded) || reason.starts_with(kWas);
}

// slurmctld's own Reason for a node that does not respond; ReturnToService=1 requires it.
bool is_not_responding_reason(std::string_view reason) {
  return reason.starts_with("Not responding") || reason.ends_with(" : Not responding");
}

// The Reason without ours; "" = no other was set.
std::string others_reason(std::string_view reason) {
  if (reason.starts_with(kOurs)) {
    const auto was = reason.find(kWas);
    reason = was == reason.npos ? "" : reason.substr(was + kWas.size());
  }
  return is_not_responding_reason(reason) ? "" : std::string{reason};
}

std::string machine_reason(const KubeNode& node) {
  return std::string{kMachineDeleted} + " [" + node.uid + "]";
}

// Whether the note is about this drain. slurmctld may clear the Reason when the node comes back
// (ReturnToService=2).
bool is_noted(const DrainNote& note, const SlurmNode& slurm) {
  return !note.reason.empty() && note.slurm_node == slurm.name &&
         (slurm.reason.empty() || slurm.reason == note.reason ||
          slurm.reason.starts_with(note.reason + std::string{kAdded}));
}

DrainRuling end_drain(const KubeNode& node, const SlurmNode& slurm, MachineOf machine,
                      const DrainNote& note) {
  if (slurm.is_rebooting()) {
    return {};  // slurmctld drains for a reboot with the present Reason, and undrains afterwards
  }
  if (is_noted(note, slurm)) {
    return note.state == "FAIL" ? DrainRuling{DrainAction::kFail, note.reason}
                                : DrainRuling{DrainAction::kUndrain};
  }
  if (!is_own_drain(slurm.reason) || !health_type(slurm.reason).empty()) {
    return node.drain.empty() ? DrainRuling{} : DrainRuling{DrainAction::kNote};
  }
  // Only the next Machine's Node ends it: this Machine's Node may persist or come back while the
  // host is being deprovisioned.
  if (is_machine_reason(slurm.reason) &&
      (machine != MachineOf::kLives || slurm.reason.starts_with(machine_reason(node)))) {
    return {};
  }
  return end_own_drain(slurm);
}

DrainRuling not_wanted(const KubeNode& node, const SlurmNode& slurm, MachineOf machine) {
  const DrainNote note = parse_drain_note(node.drain);
  if (slurm.state.has("DRAIN")) {
    return end_drain(node, slurm, machine, note);
  }
  if (!node.drain.empty()) {
    return {DrainAction::kNote};
  }
  // Otherwise a prolog that fails would drain the node with our Reason.
  if (is_own_drain(slurm.reason)) {
    const std::string others = others_reason(slurm.reason);
    return {DrainAction::kSetReason, others.empty() ? std::string{kUndrainedReason} : others};
  }
  return {};
}

// A DOWN or FAIL node keeps its own Reason while it is drained.
bool keeps_reason(const SlurmNode& slurm) {
  const auto& state = slurm.state;
  return (state.base == "DOWN" || state.base == "ERROR" || state.has("FAIL")) &&
         !others_reason(slurm.reason).empty();
}

// Once the Machine is being deleted, an uncordon must not undrain. 0.1 put ours before the Reason
// of a DOWN node.
DrainRuling wanted_of_drained(const KubeNode& node, const SlurmNode& slurm, bool deleting) {
  const bool is_ours = is_own_drain(slurm.reason) || is_scale_reason(slurm.reason);
  if (!deleting || !is_ours || is_noted(parse_drain_note(node.drain), slurm)) {
    return {};
  }
  if (keeps_reason(slurm)) {
    return {DrainAction::kDrain, others_reason(slurm.reason)};
  }
  return is_machine_reason(slurm.reason) ? DrainRuling{}
                                         : DrainRuling{DrainAction::kDrain, machine_reason(node)};
}

// Draining a node while it is powered up makes slurmctld requeue its jobs.
bool is_powered_up_for_jobs(const node::SlurmState& state) {
  return (state.base == "ALLOCATED" || state.base == "MIXED") &&
         (state.has("POWERING_UP") || state.has("POWERED_DOWN"));
}

DrainRuling wanted(const KubeNode& node, const SlurmNode& slurm, bool deleting) {
  if (slurm.state.has("DRAIN")) {
    return wanted_of_drained(node, slurm, deleting);
  }
  if (is_powered_up_for_jobs(slurm.state)) {
    return {DrainAction::kNone, "",
            "it is being powered up, and draining it now would requeue its jobs"};
  }
  if (!keeps_reason(slurm)) {
    return {DrainAction::kDrain, deleting ? machine_reason(node) : std::string{kCordonReason}};
  }
  const std::string others = others_reason(slurm.reason);
  // The drain of a deleted Machine keeps the administrator's Reason without a note, so only the
  // administrator ends it.
  if (!deleting) {
    std::string note =
        to_annotation({slurm.name, slurm.state.has("FAIL") ? "FAIL" : "DOWN", others});
    if (node.drain != note) {
      return {DrainAction::kNote, std::move(note)};
    }
  }
  return {DrainAction::kDrain, others};
}

}  // namespace

bool is_final(DrainAction action) {
  return action == DrainAction::kUndrain || action == DrainAction::kResume ||
         action == DrainAction::kFail || action == DrainAction::kDelete;
}

bool is_scale_reason(std::string_view reason) { return is_reason(reason, kScaleReason); }

bool is_machine_reason(std::string_view reason) { return is_reason(reason, kMachineDeleted); }

// Slurm shows a record as KEY=VALUE words, and a Node's message may hold anything.
std::string health_reason(const KubeNode& node, std::string_view type, std::string_view text) {
  std::string plain{text.substr(0, kLongestText)};
  std::ranges::replace_if(
      plain,
      [](char c) {
        return c < ' ' || c > '~' || std::string_view{"[]=\"\\"}.find(c) != std::string_view::npos;
      },
      '?');
  return std::string{kOurs} + std::string{type} + ": " + plain + " [" + node.uid + "]";
}

std::string health_type(std::string_view reason) {
  const auto colon = reason.find(": ", std::min(kOurs.size(), reason.size()));
  const auto uid = reason.find(" [");
  if (!reason.starts_with(kOurs) || uid == reason.npos || colon >= uid ||
      !is_reason(reason, reason.substr(0, uid))) {
    return "";
  }
  const auto type = reason.substr(kOurs.size(), colon - kOurs.size());
  return type.find(' ') == type.npos ? std::string{type} : "";
}

bool is_drained_for_health(const SlurmNode& slurm) {
  return slurm.state.has("DRAIN") && !health_type(slurm.reason).empty();
}

bool is_own_drain(std::string_view reason) {
  return is_reason(reason, kCordonReason) || is_machine_reason(reason) ||
         !health_type(reason).empty();
}

std::string to_annotation(const DrainNote& note) {
  return nlohmann::ordered_json{
      {"slurmNode", note.slurm_node}, {"state", note.state}, {"reason", note.reason}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

DrainNote parse_drain_note(std::string_view text) {
  const auto value = nlohmann::json::parse(text, nullptr, false);
  const auto field = [&](const char* key) {
    const auto found = value.is_object() ? value.find(key) : value.end();
    return found != value.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return {field("slurmNode"), field("state"), field("reason")};
}

DrainRuling end_own_drain(const SlurmNode& slurm) {
  if (slurm.state.base != "DOWN") {
    return {DrainAction::kUndrain};
  }
  return slurm.state.has("NOT_RESPONDING")
             ? DrainRuling{DrainAction::kNone, "",
                           "it is DOWN, and its slurmd does not respond yet"}
             : DrainRuling{DrainAction::kResume};
}

DrainRuling rule_drain(const KubeNode& node, const SlurmNode& slurm, MachineOf machine) {
  const bool deleting = machine == MachineOf::kDeleting;
  return node.unschedulable || deleting ? wanted(node, slurm, deleting)
                                        : not_wanted(node, slurm, machine);
}

}  // namespace slurmlet::op
