#include "node/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/rfc3339.h"
#include "node/slurm_view.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

using Liveness = SlurmdFacts::Liveness;

struct PressureRule {
  const char* type;
  const std::optional<Pressure> MachineFacts::*fact;
  const char* bad_reason;
  const char* good_reason;
  const char* good_message;
};

// Reasons and good messages are the kubelet's, dashboards match on them.
constexpr std::array<PressureRule, 3> kPressures{{
    {vocabulary::kMemoryPressure, &MachineFacts::memory_pressure, "KubeletHasInsufficientMemory",
     "KubeletHasSufficientMemory", "memory is available"},
    {vocabulary::kDiskPressure, &MachineFacts::disk_pressure, "KubeletHasDiskPressure",
     "KubeletHasNoDiskPressure", "disk space is available"},
    {vocabulary::kPidPressure, &MachineFacts::pid_pressure, "KubeletHasInsufficientPID",
     "KubeletHasSufficientPID", "process IDs are available"},
}};

struct StateRule {
  const char* word;  // Slurm's
  bool is_base;      // else a flag
  const char* no_reason;
  const char* no_message;
  const char* yes_message;
};

constexpr std::array<StateRule, 10> kCore{{
    {"IDLE", true, "NotIdle", "jobs use this node or it is not available to jobs",
     "no job runs on this node"},
    {"MIXED", true, "NotMixed", "jobs use none or all of this node", "jobs use part of this node"},
    {"ALLOCATED", true, "NotAllocated", "jobs do not use all of this node",
     "jobs use all of this node"},
    {"COMPLETING", false, "NotCompleting", "no job is completing on this node",
     "a job is completing on this node"},
    {"DRAIN", false, "NotDrained", "Slurm does not drain this node", ""},
    {"DOWN", true, "NotDown", "Slurm does not report this node down",
     "Slurm reports this node down"},
    {"FAIL", false, "NotFailing", "Slurm does not report this node failing",
     "Slurm expects this node to fail and starts no new jobs on it"},
    {"MAINTENANCE", false, "NotInMaintenance", "this node is in no maintenance reservation",
     "this node is in a maintenance reservation"},
    {"NOT_RESPONDING", false, "Responding", "slurmctld hears from slurmd on this node",
     "slurmctld does not hear from slurmd on this node"},
    {"INVALID_REG", false, "ValidRegistration", "slurmctld accepted slurmd's registration",
     "slurmctld refused slurmd's registration: the machine does not have what slurm.conf promises"},
}};

std::string type_of(const std::string& word) {
  return vocabulary::kSlurmNodeState + camel_case(word);
}

// ' by root since 2026-11-20T14:02:11Z: "bad dimm"', as far as known.
std::string attribution(const SlurmNodeRecord& record) {
  std::string text;
  if (!record.reason_user.empty()) {
    text += " by " + record.reason_user;
  }
  if (record.reason_time) {
    text += " since " + rfc3339(*record.reason_time);
  }
  if (!record.reason.empty()) {
    text += fmt::format(": \"{}\"", record.reason);
  }
  return text;
}

// Slurm keeps the reason of a drain or a down after it is over, so it is shown with these only.
bool explained_by_reason(const std::string& word) {
  return word == "DOWN" || word == "FAIL" || word == "INVALID_REG" || word == "NOT_RESPONDING";
}

Condition drain_condition(const SlurmNodeRecord& record, bool busy) {
  const std::string message = (busy ? "draining" : "drained") + attribution(record) +
                              (busy ? "; jobs are still running" : "; no jobs are running");
  return {type_of("DRAIN"), "True", busy ? "Draining" : "Drained", message};
}

Condition core_condition(const StateRule& rule, const SlurmNodeRecord& record,
                         const SlurmView& view) {
  const bool holds = rule.is_base ? view.base == rule.word : record.state.has(rule.word);
  const std::string type = type_of(rule.word);
  if (!holds) {
    return {type, "False", rule.no_reason, rule.no_message};
  }
  if (type == type_of("DRAIN")) {
    return drain_condition(record, view.busy);
  }
  std::string message = rule.yes_message;
  if (explained_by_reason(rule.word) && !record.reason.empty()) {
    message += attribution(record);
  }
  return {type, "True", camel_case(rule.word), message};
}

bool is_core(const std::string& word) {
  for (const auto& rule : kCore) {
    if (word == rule.word) {
      return true;
    }
  }
  return false;
}

// PLANNED comes and goes with every backfill cycle, so it is in the state annotation only.
// Slurm prints "?" for a flag that it has no word for.
bool worth_a_condition(const std::string& word) {
  const bool is_word = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_word && word != "PLANNED";
}

Condition further_condition(const std::string& word) {
  return {type_of(word), "True", camel_case(word), "Slurm reports " + word + " for this node"};
}

Condition slurm_verdict(const SlurmNodeRecord& record) {
  for (const char* flag : {"INVALID_REG", "FAIL", "NOT_RESPONDING"}) {
    if (record.state.has(flag)) {
      return {vocabulary::kReady, "False", "Slurm" + camel_case(flag),
              fmt::format("Slurm reports {} for this node{}", flag, attribution(record))};
    }
  }
  if (record.state.base == "DOWN") {
    return {vocabulary::kReady, "False", "SlurmDown",
            "Slurm reports this node down" + attribution(record)};
  }
  return {vocabulary::kReady, "True", "SlurmdRunning",
          "slurmd is running and Slurm uses this node; pods are refused"};
}

}  // namespace

std::vector<Condition> machine_conditions(const MachineFacts& machine) {
  std::vector<Condition> out;
  out.push_back({vocabulary::kNetworkUnavailable, "False", "SlurmNode",
                 "this node runs no pods and needs no pod network"});
  for (const auto& rule : kPressures) {
    const auto& fact = machine.*rule.fact;
    if (!fact) {
      out.push_back({rule.type, "Unknown", "CannotRead", "slurmlet could not read it from /proc"});
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
    return {type, "Unknown", "ExternalNode", "Slurm runs no slurmd on an external node"};
  }
  const std::string name = slurmd.version.empty() ? "slurmd" : "slurmd " + slurmd.version;
  switch (slurmd.liveness) {
    case Liveness::kRunning:
      break;
    case Liveness::kStopped:
      return {type, "False", "SlurmdStopped",
              name + " is stopped (SIGSTOP or a debugger) and answers nobody"};
    case Liveness::kAbsent:
      return {type, "False", "SlurmdNotRunning",
              facts.jobs && facts.jobs->jobs > 0
                  ? "slurmd is not running on this machine; processes of its jobs still are"
                  : "slurmd is not running on this machine"};
    case Liveness::kUnknown:
      return {type, "Unknown", "SlurmdUnknown",
              slurmd.detail.empty() ? "slurmlet cannot tell whether slurmd runs" : slurmd.detail};
  }
  if (!known) {
    return {type, "True", "SlurmdRunning", name + " is running"};
  }
  return {type, "True", "SlurmdRunning",
          name + (facts.slurm.record->state.has("NOT_RESPONDING")
                      ? " is running, but slurmctld does not hear from it"
                      : " is running and slurmctld talks to it")};
}

std::vector<Condition> slurm_state_conditions(const HostFacts& facts) {
  std::vector<Condition> out;
  const SlurmView view = slurm_view(facts);
  if (view.knowledge != Knowledge::kKnown) {
    for (const auto& rule : kCore) {
      out.push_back({type_of(rule.word), "Unknown", view.reason, view.message});
    }
    return out;
  }
  const SlurmNodeRecord& record = *facts.slurm.record;
  for (const auto& rule : kCore) {
    out.push_back(core_condition(rule, record, view));
  }
  if (!is_core(record.state.base) && worth_a_condition(record.state.base)) {
    out.push_back(further_condition(record.state.base));
  }
  for (const auto& flag : record.state.flags) {
    if (!is_core(flag) && worth_a_condition(flag)) {
      out.push_back(further_condition(flag));
    }
  }
  return out;
}

Condition ready_condition(const HostFacts& facts, const NodePolicy& policy,
                          const Circumstances& circumstances) {
  const char* type = vocabulary::kReady;
  if (circumstances.shutting_down) {
    return {type, "False", "NodeShuttingDown", "node is shutting down"};
  }
  if (policy.ready_follows == ReadyFollows::kDaemon) {
    return {type, "True", "SlurmletRunning", "slurmlet is running; pods are refused"};
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
    case Liveness::kAbsent:
      if (circumstances.slurmd_grace_over) {
        const Condition slurmd = slurmd_condition(facts);
        return {type, "False", slurmd.reason, slurmd.message};
      }
      return {type, "True", "SlurmdGracePeriod",
              "slurmd has just gone; the node stays ready for the grace period"};
  }
  // A slurmctld that cannot be asked never makes a node unready.
  if (policy.ready_follows == ReadyFollows::kSlurm && known) {
    return slurm_verdict(*facts.slurm.record);
  }
  if (external) {
    return {type, "True", "ExternalNode",
            "Slurm runs no slurmd on an external node; pods are refused"};
  }
  return {type, "True", "SlurmdRunning",
          "slurmd is running; jobs are scheduled by Slurm, pods are refused"};
}

}  // namespace slurmlet::node
