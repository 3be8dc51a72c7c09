#include "node/node_events.h"

#include <fmt/format.h>

#include <array>

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
bool is_news(const EventRule& rule, const Condition& old, const Condition& now) {
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

}  // namespace

std::vector<NodeEvent> condition_events(const std::vector<Condition>& before,
                                        const std::vector<Condition>& after) {
  std::vector<NodeEvent> events;
  if (before.empty()) {
    return events;
  }
  for (const auto& rule : kRules) {
    const Condition* old = find_condition(before, rule.type);
    const Condition* now = find_condition(after, rule.type);
    if (old == nullptr || now == nullptr) {
      continue;
    }
    if (old->reason == vocabulary::kNotAskedYet &&
        (now->status != "Unknown" || now->reason == old->reason)) {
      continue;  // the first answer after start is no change either; that there is none is news
    }
    const bool was_open = old->reason == vocabulary::kNotAskedYet;
    const bool same = old->status == now->status && !was_open;
    if (same && !is_news(rule, *old, *now)) {
      continue;
    }
    if (now->status == "Unknown") {
      if (rule.type == vocabulary::kSlurmNodeStateDown) {  // one Event for all of Slurm's states
        events.push_back({true, "SlurmStateUnknown", now->message});
      }
      continue;
    }
    const bool bad = (now->status == "True") == rule.bad_status;
    if (was_open && !bad) {
      continue;
    }
    if (old->status == "Unknown" && rule.type == vocabulary::kSlurmNodeStateDown && !bad) {
      events.push_back({false, "SlurmStateKnown", "slurmctld reports on this node again"});
      continue;
    }
    if (!bad && old->status == "Unknown") {
      continue;
    }
    std::string reason{bad ? rule.bad_reason : rule.good_reason};
    if (reason.empty()) {
      reason = now->reason;
    }
    if (bad && rule.type == vocabulary::kSlurmNodeStateDrain &&
        now->reason == vocabulary::kDrained) {
      reason = "SlurmDrained";
    }
    events.push_back({bad, reason, now->message});
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
