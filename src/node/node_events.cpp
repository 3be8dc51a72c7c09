#include "node/node_events.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

struct EventRule {
  std::string_view type;
  bool bad_status;               // the status that deserves a warning
  std::string_view bad_reason;   // Event reason when it begins; "" = the condition's
  std::string_view good_reason;  // and when it is over
};

constexpr std::array<EventRule, 9> kRules{{
    {vocabulary::kSlurmdReady, false, "", "SlurmdRunning"},
    {vocabulary::kSlurmNodeStateDrain, true, "SlurmDraining", "SlurmUndrained"},
    {vocabulary::kSlurmNodeStateDown, true, "SlurmDown", "SlurmUp"},
    {vocabulary::kSlurmNodeStateFail, true, "SlurmFailing", "SlurmNotFailing"},
    {vocabulary::kSlurmNodeStateNotResponding, true, "SlurmNotResponding", "SlurmResponding"},
    {vocabulary::kSlurmNodeStateInvalidReg, true, "SlurmInvalidRegistration",
     "SlurmValidRegistration"},
    {vocabulary::kSlurmNodeStateMaintenance, true, "SlurmMaintenance", "SlurmMaintenanceOver"},
    {vocabulary::kGpuHealthy, false, "GPUMissing", "GPUsPresent"},
    {vocabulary::kReady, false, "NodeNotReady", "NodeReady"},
}};

// Though the status stays: draining → drained, another missing GPU, and slurmd suspended → down.
bool is_change(const EventRule& rule, const Condition& old, const Condition& now) {
  const bool is_bad = (now.status == "True") == rule.bad_status;
  if (rule.type == vocabulary::kGpuHealthy) {
    return is_bad && now.status != "Unknown" && old.message != now.message;
  }
  if (rule.type == vocabulary::kSlurmdReady) {
    return is_bad && now.status != "Unknown" && old.reason != now.reason;
  }
  return rule.type == vocabulary::kSlurmNodeStateDrain && is_bad &&
         now.reason == vocabulary::kDrained && old.reason != vocabulary::kDrained;
}

// Whether a condition that is known now changed for people.
bool is_change(const EventRule& rule, const Condition& old, const Condition& now, bool bad) {
  if (old.status == "Unknown") {
    return bad;
  }
  return old.status != now.status || is_change(rule, old, now);
}

std::string event_reason(const EventRule& rule, const Condition& now, bool bad) {
  if (bad && rule.type == vocabulary::kSlurmNodeStateDrain && now.reason == vocabulary::kDrained) {
    return "SlurmDrained";
  }
  const std::string reason{bad ? rule.bad_reason : rule.good_reason};
  return reason.empty() ? now.reason : reason;
}

std::optional<NodeEvent> condition_event(const EventRule& rule, const Condition& old,
                                         const Condition& now) {
  // One Event for all of Slurm's states, when they become unknown and when they are known again.
  const bool stands_for_all = rule.type == vocabulary::kSlurmNodeStateDown;
  const bool was_open = old.reason == vocabulary::kNotAskedYet;
  if (now.status == "Unknown") {
    const bool is_new = old.status != "Unknown" || (was_open && now.reason != old.reason);
    return is_new && stands_for_all
               ? std::optional{NodeEvent{true, "SlurmStateUnknown", now.message}}
               : std::nullopt;
  }
  if (was_open) {
    return std::nullopt;  // the first answer after a start is no change
  }
  const bool bad = (now.status == "True") == rule.bad_status;
  if (stands_for_all && old.status == "Unknown" && !bad) {
    return NodeEvent{false, "SlurmStateKnown", "slurmctld reports on this node again"};
  }
  return is_change(rule, old, now, bad)
             ? std::optional{NodeEvent{bad, event_reason(rule, now, bad), now.message}}
             : std::nullopt;
}

}  // namespace

std::vector<NodeEvent> condition_events(const std::vector<Condition>& before,
                                        const std::vector<Condition>& after) {
  std::vector<NodeEvent> events;
  for (const auto& rule : kRules) {
    const Condition* old = find_condition(before, rule.type);
    const Condition* now = find_condition(after, rule.type);
    if (old != nullptr && now != nullptr) {
      if (auto event = condition_event(rule, *old, *now)) {
        events.push_back(*std::move(event));
      }
    }
  }
  return events;
}

std::string registered_message(const DesiredNode& desired, const std::string& cluster) {
  std::string text = "registered as a zero-pod node";
  if (!cluster.empty()) {
    text += fmt::format(" of Slurm cluster \"{}\"", cluster);
  }
  const auto uuid = desired.labels.find(vocabulary::kLabelMetal3Uuid);
  if (uuid != desired.labels.end()) {
    text += fmt::format(" (metal3 uuid {})", uuid->second);
  }
  return text;
}

}  // namespace slurmlet::node
