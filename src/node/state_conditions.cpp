// The conditions SlurmNodeState…: one for each state and flag of Slurm. Words and bits are those of
// slurm/slurm.h (enum node_states, NODE_STATE_*) and slurm_protocol_defs.c from 22.05 to 25.11.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "node/conditions.h"
#include "node/slurm_view.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

struct CoreRule {
  const char* word;  // Slurm's
  bool is_base;      // else a flag
  const char* no_reason;
  const char* no_message;
  const char* yes_message;
};

constexpr std::array<CoreRule, 10> kCore{{
    {"IDLE", true, "NotIdle", "node is not idle in Slurm", "node is idle in Slurm"},
    {"MIXED", true, "NotMixed", "node is not partially allocated", "node is partially allocated"},
    {"ALLOCATED", true, "NotAllocated", "node is not fully allocated", "node is fully allocated"},
    {"COMPLETING", false, "NotCompleting", "no jobs are completing on this node",
     "a job is completing on this node"},
    {"DRAIN", false, "NotDrained", "node is not drained or draining", ""},
    {"DOWN", true, "NotDown", "node is not down in Slurm", "node is down in Slurm"},
    {"FAIL", false, "NotFailing", "node is not failing in Slurm",
     "Slurm expects this node to fail and starts no new jobs on it"},
    {"MAINTENANCE", false, "NotInMaintenance", "node is not in a maintenance reservation",
     "this node is in a maintenance reservation: only that reservation's jobs start here until it "
     "ends"},
    {"NOT_RESPONDING", false, "Responding", "slurmd on this node responds to slurmctld",
     "slurmd on this node does not respond to slurmctld"},
    {"INVALID_REG", false, "ValidRegistration", "slurmctld accepted the registration",
     "slurmctld rejected the registration: the node has fewer resources than slurm.conf specifies; "
     "compare slurmd -C with slurm.conf"},
}};

struct FurtherRule {
  const char* word;
  const char* message;
  const char* if_slurmd_runs;  // where a running slurmd contradicts it: what that means
};

// There while true. PLANNED is missing on purpose: see worth_a_condition().
constexpr auto kFurther = std::to_array<FurtherRule>({
    {"REBOOT_REQUESTED",
     "a reboot of this node has been requested; it takes place once its jobs have ended", ""},
    {"REBOOT_ISSUED",
     "slurmctld has ordered this node to reboot; it accepts jobs again once slurmd has registered",
     ""},
    {"POWER_DOWN", "Slurm will power this node down once its jobs have ended", ""},
    {"POWERING_DOWN", "Slurm is powering this node down", ""},
    {"POWERED_DOWN", "Slurm has powered this node down and will power it up when a job needs it",
     "but slurmd is running on this machine: Slurm starts no jobs here until it has powered the "
     "node up (scontrol update nodename=NAME state=power_up)"},
    {"POWER_UP", "Slurm is about to power this node up", ""},
    {"POWERING_UP", "Slurm is powering this node up and waiting for slurmd to register",
     "and slurmd is running on this machine: slurmctld has not accepted its registration yet and "
     "accepts only a registration made after a reboot"},
    {"POWER_DRAIN", "Slurm is draining this node to power it down", ""},
    {"CLOUD", "cloud node; exists only while powered up", ""},
    {"FUTURE", "slurm.conf reserves this node for future use; jobs cannot use it",
     "but slurmd is running on this machine: it has not registered as this node"},
    {"DYNAMIC_NORM", "dynamic node: it registered itself (slurmd -Z) and is not in slurm.conf", ""},
    {"DYNAMIC_FUTURE", "dynamic node: it took the place of a FUTURE node in slurm.conf (slurmd -F)",
     ""},
    {"RESERVED", "this node is in a reservation: only that reservation's jobs start here", ""},
    {"BLOCKED", "blocked by a job with exclusive topology on neighbouring nodes", ""},
    {"EXTERNAL", "external node: Slurm tracks its jobs but runs no slurmd on it", ""},
    {"PERFCTRS", "a job is using network performance counters", ""},
    {"UNKNOWN",
     "slurmctld does not know this node's state: slurmd has not registered successfully since "
     "slurmctld started",
     ""},
    {"ERROR", "Slurm reports an error for this node", ""},
    {"RESUME", "Slurm is about to return this node to service", ""},
    {"UNDRAIN", "Slurm is about to undrain this node", ""},
});

constexpr std::size_t kMaxWordLength = 63;
constexpr std::size_t kMaxListed = 20;  // job ids, words without a condition of their own

std::string type_of(const std::string& word) {
  return vocabulary::kSlurmNodeState + camel_case(word);
}

// Slurm's reason explains these; with others it may be an old one.
bool explained_by_reason(const std::string& word) {
  return word == "DOWN" || word == "FAIL" || word == "INVALID_REG" || word == "NOT_RESPONDING" ||
         word == "ERROR";
}

std::string job_ids(const LocalJobs& jobs) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::min(jobs.job_ids.size(), kMaxListed); ++i) {
    ids.push_back(std::to_string(jobs.job_ids[i]));
  }
  if (jobs.job_ids.size() > kMaxListed) {
    ids.push_back(fmt::format("and {} more", jobs.job_ids.size() - kMaxListed));
  }
  return ids.empty() ? "" : " (" + join(ids, ", ") + ")";
}

// What keeps a draining node from being drained.
std::string still_running(const HostFacts& facts, const NodePolicy& policy) {
  if (!facts.jobs) {
    return "jobs are still running";
  }
  const int count = facts.jobs->jobs;
  if (count > 0) {
    return fmt::format("{} still running{}",
                       count == 1 ? "1 job is" : fmt::format("{} jobs are", count),
                       policy.publish_job_ids ? job_ids(*facts.jobs) : "");
  }
  return facts.slurm.record->state.has("COMPLETING") ? "a job is still completing"
                                                     : "allocated to a job that has no process on "
                                                       "this node; see squeue -w with its NodeName";
}

Condition drain_condition(const HostFacts& facts, const SlurmView& view, const NodePolicy& policy) {
  const std::string why = attribution(*facts.slurm.record);
  if (!view.in_use) {
    return {type_of("DRAIN"), "True", vocabulary::kDrained,
            "drained" + why + "; no jobs are running"};
  }
  return {type_of("DRAIN"), "True", "Draining",
          "draining" + why + "; " + still_running(facts, policy)};
}

// ': "bad dimm"' and what else belongs to the state, such as the reservation's name.
std::string details(const std::string& word, const SlurmNodeRecord& record) {
  if (explained_by_reason(word) && !record.reason.empty()) {
    return attribution(record);
  }
  if ((word == "MAINTENANCE" || word == "RESERVED") && !record.reservation.empty()) {
    return fmt::format(" (reservation \"{}\")", record.reservation);
  }
  if (word.starts_with("REBOOT_") && !next_state(record).empty()) {
    return next_state(record) == "DOWN" ? "; afterwards it stays down"
                                        : "; afterwards it returns to service";
  }
  return "";
}

Condition core_condition(const CoreRule& rule, const HostFacts& facts, const SlurmView& view,
                         const NodePolicy& policy) {
  const SlurmNodeRecord& record = *facts.slurm.record;
  const bool holds = rule.is_base ? view.is(rule.word) : record.state.has(rule.word);
  const std::string_view word = rule.word;
  if (!view.reason.empty() && (word == "MIXED" || word == "ALLOCATED")) {
    return {type_of(rule.word), "Unknown", view.reason, view.message};
  }
  if (!holds) {
    return {type_of(rule.word), "False", rule.no_reason, rule.no_message};
  }
  if (word == "DRAIN") {
    return drain_condition(facts, view, policy);
  }
  return {type_of(rule.word), "True", camel_case(rule.word),
          rule.yes_message + details(rule.word, record)};
}

bool is_core(const std::string& word) {
  return std::any_of(kCore.begin(), kCore.end(),
                     [&](const CoreRule& rule) { return word == rule.word; });
}

// PLANNED comes and goes with every backfill cycle, so it is in the state annotation only.
bool worth_a_condition(const std::string& word) { return !word.empty() && word != "PLANNED"; }

bool is_plain_word(const std::string& word) {
  const auto is_letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  return word.size() <= kMaxWordLength && is_letter(word.front()) && all_alnum(word, "_");
}

Condition further_condition(const std::string& word, const HostFacts& facts) {
  const auto rule = std::find_if(kFurther.begin(), kFurther.end(),
                                 [&](const FurtherRule& known) { return word == known.word; });
  if (rule == kFurther.end()) {
    return {type_of(word), "True", camel_case(word), "Slurm reports " + word + " for this node"};
  }
  std::string message = rule->message + details(word, *facts.slurm.record);
  if (runs_here(facts.slurmd) && *rule->if_slurmd_runs != '\0') {
    message += std::string{", "} + rule->if_slurmd_runs;
  }
  return {type_of(word), "True", camel_case(word), message};
}

// "?" stands for a flag that Slurm itself has no word for; what else is no word is not guessed at.
Condition other_condition(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (std::size_t i = 0; i < std::min(words.size(), kMaxListed); ++i) {
    quoted.push_back('"' + words[i] + '"');
  }
  if (words.size() > kMaxListed) {
    quoted.push_back(fmt::format("and {} more", words.size() - kMaxListed));
  }
  return {vocabulary::kSlurmNodeStateOther, "True", "NotUnderstood",
          "Slurm reports states unknown to slurmlet: " + join(quoted, ", ")};
}

// Cut at a character, so that the text stays UTF-8.
std::string shortened(const std::string& word) {
  std::size_t end = std::min(word.size(), kMaxWordLength);
  while (end > 0 && end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) {
    --end;
  }
  return word.substr(0, end);
}

void add_further(const HostFacts& facts, std::vector<Condition>& out) {
  const SlurmState& state = facts.slurm.record->state;
  std::vector<std::string> words{state.base};
  words.insert(words.end(), state.flags.begin(), state.flags.end());
  std::set<std::string> types{vocabulary::kSlurmNodeStateOther};
  for (const Condition& condition : out) {
    types.insert(condition.type);
  }
  std::vector<std::string> others;
  for (const std::string& word : words) {
    if (is_core(word) || !worth_a_condition(word)) {
      continue;
    }
    // Two words may make one type ("A_B", "A__B"); a type must not come twice.
    if (is_plain_word(word) && types.insert(type_of(word)).second) {
      out.push_back(further_condition(word, facts));
    } else {
      others.push_back(shortened(word));
    }
  }
  if (!others.empty()) {
    out.push_back(other_condition(others));
  }
}

}  // namespace

std::vector<Condition> slurm_state_conditions(const HostFacts& facts, const NodePolicy& policy) {
  std::vector<Condition> out;
  const SlurmView view = slurm_view(facts);
  for (const auto& rule : kCore) {
    out.push_back(view.knowledge == Knowledge::kKnown
                      ? core_condition(rule, facts, view, policy)
                      : Condition{type_of(rule.word), "Unknown", view.reason, view.message});
  }
  if (view.knowledge == Knowledge::kKnown) {
    add_further(facts, out);
  }
  return out;
}

}  // namespace slurmlet::node
