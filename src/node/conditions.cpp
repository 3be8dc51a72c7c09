#include "node/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "node/slurm_view.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

using Liveness = SlurmdFacts::Liveness;

// Half of a message: what follows the reason is shown as well.
constexpr std::size_t kMaxReasonBytes = kMaxPlainBytes / 2;

struct PressureRule {
  const char* type;
  const std::optional<Pressure> MachineFacts::*fact;
  const char* bad_reason;
  const char* good_reason;
  const char* good_message;
  const char* unreadable;
};

// Reasons and good messages are the kubelet's, dashboards match on them.
constexpr std::array<PressureRule, 3> kPressures{{
    {vocabulary::kMemoryPressure, &MachineFacts::memory_pressure, "KubeletHasInsufficientMemory",
     "KubeletHasSufficientMemory", "memory is available", "could not be read from /proc"},
    {vocabulary::kDiskPressure, &MachineFacts::disk_pressure, "KubeletHasDiskPressure",
     "KubeletHasNoDiskPressure", "disk space is available",
     "the file system of stateDir could not be read"},
    {vocabulary::kPidPressure, &MachineFacts::pid_pressure, "KubeletHasInsufficientPID",
     "KubeletHasSufficientPID", "process IDs are available", "could not be read from /proc"},
}};

Condition slurm_verdict(const SlurmNodeRecord& record, const SlurmView& view) {
  for (const char* flag : {"INVALID_REG", "FAIL", "NOT_RESPONDING"}) {
    if (record.state.has(flag)) {
      return {vocabulary::kReady, "False", "Slurm" + camel_case(flag),
              fmt::format("Slurm reports {} for this node{}", flag, attribution(record))};
    }
  }
  if (view.is("DOWN")) {
    return {vocabulary::kReady, "False", "SlurmDown",
            "node is down in Slurm" + attribution(record)};
  }
  for (const char* flag : {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"}) {
    if (record.state.has(flag)) {
      return {vocabulary::kReady, "False", "Slurm" + camel_case(flag),
              fmt::format("Slurm reports {} for this node and is not starting jobs on it", flag)};
    }
  }
  if (record.state.base == "FUTURE") {
    return {vocabulary::kReady, "False", "SlurmFuture",
            "slurm.conf reserves this node for future use; jobs cannot use it"};
  }
  return {vocabulary::kReady, "True", "SlurmdRunning",
          "slurmd is running and the node is in service in Slurm; pods are rejected"};
}

// What slurmctld makes of a running slurmd. It talks to none of the nodes in the listed states
// (src/slurmctld/ping_nodes.c), so these contradict what the machine shows.
std::string slurmctlds_side(const SlurmState& state) {
  if (state.has("NOT_RESPONDING")) {
    return ", but it does not respond to slurmctld";
  }
  if (state.has("INVALID_REG")) {
    return ", but slurmctld rejected its registration";
  }
  for (const char* flag : {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"}) {
    if (state.has(flag)) {
      return fmt::format(", but Slurm reports {} for this node", flag);
    }
  }
  if (state.base == "FUTURE" || state.base == "UNKNOWN") {
    return fmt::format(", but it has not registered with slurmctld: Slurm reports {} for this node",
                       state.base);
  }
  return " and responding to slurmctld";
}

}  // namespace

std::string attribution(const SlurmNodeRecord& record) {
  std::string text;
  if (record.reason.empty()) {
    return text;  // a time may be left over from an earlier one
  }
  if (!record.reason_user.empty()) {
    text += " by " + record.reason_user;
  }
  if (record.reason_time) {
    text += " since " + rfc3339(*record.reason_time);
  }
  return text + fmt::format(": \"{}\"", plain_text(record.reason, kMaxReasonBytes));
}

std::string next_state(const SlurmNodeRecord& record) {
  std::string text = to_upper(record.next_state);
  std::replace(text.begin(), text.end(), ',', '+');
  const auto words = split(text, '+');
  for (const char* word : {"RESUME", "DOWN"}) {
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      return word;
    }
  }
  return "";
}

std::vector<Condition> machine_conditions(const MachineFacts& machine) {
  std::vector<Condition> out;
  out.push_back({vocabulary::kNetworkUnavailable, "False", "SlurmNode",
                 "this node runs no pods and needs no pod network"});
  for (const auto& rule : kPressures) {
    const auto& fact = machine.*rule.fact;
    if (!fact && rule.fact == &MachineFacts::disk_pressure && !machine.disk_problem.empty()) {
      out.push_back({rule.type, "Unknown", "FileSystemNotResponding",
                     machine.disk_problem + ": check its mount and its server"});
    } else if (!fact) {
      out.push_back({rule.type, "Unknown", "CannotRead", rule.unreadable});
    } else if (fact->under_pressure) {
      out.push_back({rule.type, "True", rule.bad_reason, fact->detail});
    } else {
      out.push_back({rule.type, "False", rule.good_reason, rule.good_message});
    }
  }
  return out;
}

Condition slurmd_condition(const HostFacts& facts) {
  const auto& slurmd = facts.slurmd;
  const char* type = vocabulary::kSlurmdReady;
  const SlurmView view = slurm_view(facts);
  const bool known = view.knowledge == Knowledge::kKnown;
  if (known && facts.slurm.record->state.has("EXTERNAL")) {
    return {type, "Unknown", "ExternalNode", "an external node has no slurmd"};
  }
  const std::string name = slurmd.version.empty() ? "slurmd" : "slurmd " + slurmd.version;
  switch (slurmd.liveness) {
    case Liveness::kRunning:
      break;
    case Liveness::kStopped:
      return {type, "False", "SlurmdStopped",
              name + " is suspended (SIGSTOP or debugger) and not responding"};
    case Liveness::kAbsent:
      return {type, "False", "SlurmdNotRunning",
              std::string{"slurmd is not running on this machine"} +
                  (facts.jobs && facts.jobs->jobs > 0 ? "; job processes are still running" : "") +
                  (slurmd.detail.empty() ? "" : "; " + slurmd.detail)};
    case Liveness::kUnknown:
      return {type, "Unknown", "SlurmdUnknown",
              slurmd.detail.empty() ? "cannot determine whether slurmd is running" : slurmd.detail};
  }
  return {type, "True", "SlurmdRunning",
          name + " is running" + (known ? slurmctlds_side(facts.slurm.record->state) : "")};
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [type](const auto& one) { return one.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool runs_here(const SlurmdFacts& slurmd) {
  return slurmd.liveness == Liveness::kRunning && slurmd.pid > 0;
}

Condition ready_condition(const HostFacts& facts, const NodePolicy& policy,
                          const ReadyContext& ready_context) {
  const char* type = vocabulary::kReady;
  if (ready_context.shutting_down) {
    return {type, "False", "NodeShuttingDown", "node is shutting down"};
  }
  if (policy.ready_follows == ReadyFollows::kDaemon) {
    return {type, "True", "SlurmletRunning", "slurmlet is running; pods are rejected"};
  }
  const SlurmView view = slurm_view(facts);
  const bool known = view.knowledge == Knowledge::kKnown;
  const bool external = known && facts.slurm.record->state.has("EXTERNAL");
  switch (external ? Liveness::kRunning : facts.slurmd.liveness) {
    case Liveness::kRunning:
      break;
    case Liveness::kUnknown:
      return {type, "Unknown", "SlurmdUnknown", slurmd_condition(facts).message};
    case Liveness::kStopped:
    case Liveness::kAbsent: {
      const Condition slurmd = slurmd_condition(facts);
      if (ready_context.slurmd_grace_over) {
        return {type, "False", slurmd.reason, slurmd.message};
      }
      return {type, "True", "SlurmdGracePeriod",
              slurmd.message + "; Ready becomes False after node.notReadyGracePeriod"};
    }
  }
  // A slurmctld that does not answer never makes a node unready.
  if (policy.ready_follows == ReadyFollows::kSlurm && known) {
    return slurm_verdict(*facts.slurm.record, view);
  }
  if (external) {
    return {type, "True", "ExternalNode", "an external node has no slurmd; pods are rejected"};
  }
  return {type, "True", "SlurmdRunning",
          "slurmd is running; jobs are scheduled by Slurm, pods are rejected"};
}

}  // namespace slurmlet::node
