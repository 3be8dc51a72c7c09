#include "node/node_events.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

struct EventRule {
  std::string_view type;
  bool bad_status;               // the status that deserves a warning
  std::string_view bad_reason;   // Event reason when it begins
  std::string_view good_reason;  // and when it is over
};

constexpr std::array<EventRule, 9> kRules{{
    {"SlurmdReady", false, "SlurmdNotRunning", "SlurmdRunning"},
    {"SlurmNodeStateDrain", true, "SlurmDraining", "SlurmUndrained"},
    {"SlurmNodeStateDown", true, "SlurmDown", "SlurmUp"},
    {"SlurmNodeStateFail", true, "SlurmFailing", "SlurmNotFailing"},
    {"SlurmNodeStateNotResponding", true, "SlurmNotResponding", "SlurmResponding"},
    {"SlurmNodeStateInvalidReg", true, "SlurmInvalidRegistration", "SlurmValidRegistration"},
    {"SlurmNodeStateMaintenance", true, "SlurmMaintenance", "SlurmMaintenanceOver"},
    {"GPUHealthy", false, "GPUMissing", "GPUsPresent"},
    {"Ready", false, "NodeNotReady", "NodeReady"},
}};

const Condition* find(const std::vector<Condition>& conditions, std::string_view type) {
  for (const auto& condition : conditions) {
    if (condition.type == type) {
      return &condition;
    }
  }
  return nullptr;
}

// Though the status stays: draining → drained, and another missing GPU.
bool is_news(const EventRule& rule, const Condition& old, const Condition& now) {
  const bool is_bad = (now.status == "True") == rule.bad_status;
  if (rule.type == vocabulary::kGpuHealthy) {
    return is_bad && now.status != "Unknown" && old.message != now.message;
  }
  return rule.type == "SlurmNodeStateDrain" && is_bad && now.reason == "Drained" &&
         old.reason != "Drained";
}

}  // namespace

std::vector<NodeEvent> condition_events(const std::vector<Condition>& before,
                                        const std::vector<Condition>& after) {
  std::vector<NodeEvent> events;
  if (before.empty()) {
    return events;
  }
  for (const auto& rule : kRules) {
    const Condition* old = find(before, rule.type);
    const Condition* now = find(after, rule.type);
    if (old == nullptr || now == nullptr) {
      continue;
    }
    if (old->reason == "NotAskedYet" && (now->status != "Unknown" || now->reason == old->reason)) {
      continue;  // the first answer after start is no change either; that there is none is news
    }
    // Only the first answer after start is announced() while it is open.
    const bool was_open = old->reason == "NotConfirmed" || old->reason == "NotAskedYet";
    const bool same = old->status == now->status && !was_open;
    if (now->reason == "NotConfirmed" || (same && !is_news(rule, *old, *now))) {
      continue;
    }
    if (now->status == "Unknown") {
      if (rule.type == "SlurmNodeStateDown") {  // one Event for all of Slurm's states
        events.push_back({true, "SlurmStateUnknown", now->message});
      }
      continue;
    }
    const bool bad = (now->status == "True") == rule.bad_status;
    if (was_open && !bad) {
      continue;
    }
    if (old->status == "Unknown" && rule.type == "SlurmNodeStateDown" && !bad) {
      events.push_back({false, "SlurmStateKnown", "slurmctld reports on this node again"});
      continue;
    }
    if (!bad && old->status == "Unknown") {
      continue;
    }
    std::string reason{bad ? rule.bad_reason : rule.good_reason};
    if (bad && rule.type == "SlurmNodeStateDrain" && now->reason == "Drained") {
      reason = "SlurmDrained";
    }
    events.push_back({bad, reason, now->message});
  }
  return events;
}

std::vector<Condition> announced(const std::vector<Condition>& before,
                                 std::vector<Condition> after) {
  for (Condition& now : after) {
    const Condition* old = find(before, now.type);
    const bool is_open = now.reason == "NotConfirmed" ||
                         (now.reason == "JobsUnknown" && old != nullptr && old->status == "True");
    if (is_open && old != nullptr && old->reason != "NotAskedYet") {
      now = *old;
    }
  }
  return after;
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
