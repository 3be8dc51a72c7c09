#include "node/slurm_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/rfc3339.h"
#include "base/text.h"
#include "node/resources.h"
#include "node/slurm_failure.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

std::string controllers(const HostFacts& facts) {
  return facts.slurm_conf.controllers.empty()
             ? "slurmctld"
             : "slurmctld (" + join(facts.slurm_conf.controllers, ", ") + ")";
}

std::string what_failed(const FailureKind& kind, const HostFacts& facts) {
  // Whose munge, clock or command it is.
  const char* host = facts.slurm.by_slurmrestd ? "slurmrestd's host" : "this node";
  return fmt::format(fmt::runtime(kind.what), fmt::arg("slurmctld", controllers(facts)),
                     fmt::arg("host", host));
}

SlurmView unknown_view(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  SlurmView view;
  view.knowledge = Knowledge::kUnknown;
  if (slurm.failure) {
    const FailureKind& kind = kind_of(*slurm.failure);
    view.reason = kind.reason;
    view.what = what_failed(kind, facts);
    view.cure = kind.cure;
  } else {
    view.reason = "AnswerTooOld";
    view.what = controllers(facts) + " has not been queried recently";
  }
  if (!slurm.failure_detail.empty()) {
    view.what += ": " + slurm.failure_detail;
  }
  if (slurm.answered_at && slurm.record) {
    view.what += fmt::format("; last answer at {}, state then {}", rfc3339(*slurm.answered_at),
                             slurm.record->state.raw());
  }
  view.message = view.cure.empty() ? view.what : view.what + "; " + view.cure;
  return view;
}

const std::set<std::string> kInUse{"ALLOCATED", "MIXED"};

bool is_in_use(const std::string& base) { return kInUse.contains(base); }

// Beside these, or beside a Reason (of a text that sinfo hides, only the time shows), a client's
// MIXED may stand over DOWN.
bool may_be_down(const SlurmNodeRecord& record) {
  constexpr std::array kFlags = {"DRAIN",         "FAIL",          "NOT_RESPONDING", "INVALID_REG",
                                 "REBOOT_ISSUED", "POWERING_DOWN", "POWERED_DOWN",   "POWERING_UP"};
  return !record.reason.empty() || record.reason_time ||
         std::any_of(kFlags.begin(), kFlags.end(),
                     [&](const char* flag) { return record.state.has(flag); });
}

bool steps_run(const HostFacts& facts) { return facts.jobs && facts.jobs->jobs > 0; }

// Of a full dump. sinfo until 23.02 says ALLOCATED+DRAIN, and the JSON of 23.02 ALLOCATED, of a
// node that is in use in part; the figures are right.
std::string told_base(const SlurmNodeRecord& record, const HostFacts& facts) {
  const auto cpus = usable_cpus(facts);
  const bool in_part =
      cpus && record.allocated_cpus.value_or(0) > 0 && *record.allocated_cpus < *cpus;
  return in_part && record.state.base == "ALLOCATED" ? "MIXED" : record.state.base;
}

// Of a node that is in use: in part or all of it.
std::set<std::string> bases_in_use(const HostFacts& facts) {
  const auto cpus = usable_cpus(facts);
  if (!steps_run(facts) || !facts.jobs->allocated_cpus || !cpus) {
    return kInUse;
  }
  if (*facts.jobs->allocated_cpus >= *cpus) {
    return {"ALLOCATED"};
  }
  return facts.slurm_conf.jobs_are_contained ? std::set<std::string>{"MIXED"} : kInUse;
}

// A query that fails takes nothing from it while the last answer is not stale.
bool jobs_show_state(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  if (!facts.slurm_conf.jobs_are_contained || !steps_run(facts) || !facts.jobs_at_answer ||
      !slurm.record || slurm.stale) {
    return false;
  }
  // With another flag the end of one job of several may lead elsewhere: down, powered off.
  constexpr std::array kHarmless = {"PLANNED", "RESERVED",     "MAINTENANCE",
                                    "CLOUD",   "DYNAMIC_NORM", "DYNAMIC_FUTURE"};
  const SlurmState& state = slurm.record->state;
  return (state.base == "IDLE" || is_in_use(state.base)) && !may_be_down(*slurm.record) &&
         std::all_of(state.flags.begin(), state.flags.end(),
                     [&](const std::string& flag) {
                       return std::find(kHarmless.begin(), kHarmless.end(), flag) !=
                              kHarmless.end();
                     }) &&
         facts.jobs->allocated_cpus && usable_cpus(facts);
}

bool jobs_told_since(const HostFacts& facts) {
  return jobs_show_state(facts) && facts.jobs->job_ids != *facts.jobs_at_answer;
}

// A job began since a dump said that the node was idle. Nobody asks because of it: dumps come by
// themselves, and an operator that has died sends none.
bool began_since(const HostFacts& facts) {
  const SlurmNodeRecord& record = *facts.slurm.record;
  return record.state.base == "IDLE" && !record.state.has("COMPLETING") && !may_be_down(record) &&
         steps_run(facts) && facts.jobs_at_answer &&
         !std::includes(facts.jobs_at_answer->begin(), facts.jobs_at_answer->end(),
                        facts.jobs->job_ids.begin(), facts.jobs->job_ids.end());
}

// Without a confirmation.
std::set<std::string> bases_of_answer(const HostFacts& facts) {
  const SlurmNodeRecord& record = *facts.slurm.record;
  if (jobs_told_since(facts)) {
    return bases_in_use(facts);
  }
  if (record.kind == AnswerKind::kFullDump) {
    std::set<std::string> bases = began_since(facts) ? kInUse : std::set<std::string>{};
    bases.insert(told_base(record, facts));
    return bases;
  }
  const bool covers = record.state.base == "MIXED" && record.kind == AnswerKind::kOneNode;
  if (!covers && record.state.base != "ALLOCATED") {
    return {record.state.base};
  }
  std::set<std::string> bases = bases_in_use(facts);
  if (covers && (!steps_run(facts) || record.state.has("COMPLETING"))) {
    bases.insert("IDLE");
  }
  // slurmctld ends the steps of a node that it sets down.
  if (covers && (!steps_run(facts) || may_be_down(record))) {
    bases.insert("DOWN");
  }
  return bases;
}

std::set<std::string> flags_that_last(const SlurmNodeRecord& record) {
  std::set<std::string> flags = record.state.flags;
  flags.erase("PLANNED");
  return flags;
}

// The record of the last full dump where nothing that is seen has changed since.
const SlurmNodeRecord* confirming(const HostFacts& facts) {
  if (!facts.confirmed) {
    return nullptr;
  }
  const SlurmNodeRecord& then = facts.confirmed->record;
  const SlurmNodeRecord& now = *facts.slurm.record;
  const bool same_jobs = facts.jobs && facts.jobs->job_ids == facts.confirmed->job_ids;
  const bool same = now.name == then.name && now.reason == then.reason &&
                    now.reason_time == then.reason_time &&
                    flags_that_last(now) == flags_that_last(then) &&
                    now.allocated_cpus == then.allocated_cpus;  // nobody made a dump since
  return same && same_jobs && kInUse.contains(told_base(then, facts)) ? &then : nullptr;
}

std::set<std::string> bases_of(const HostFacts& facts) {
  std::set<std::string> bases = bases_of_answer(facts);
  if (bases.size() > 1) {
    const SlurmNodeRecord* confirmed = confirming(facts);
    if (confirmed != nullptr && bases.contains(told_base(*confirmed, facts))) {
      return {told_base(*confirmed, facts)};
    }
  }
  return bases;
}

Use use_of(const HostFacts& facts, const std::set<std::string>& bases) {
  if (steps_run(facts) || facts.slurm.record->state.has("COMPLETING")) {
    return Use::kBusy;
  }
  if (std::all_of(bases.begin(), bases.end(), is_in_use)) {
    return Use::kBusy;
  }
  return std::none_of(bases.begin(), bases.end(), is_in_use) ? Use::kFree : Use::kUnknown;
}

std::string what_is_open(const SlurmView& view, const HostFacts& facts) {
  if (facts.slurm.record->kind == AnswerKind::kFullDump) {
    return "a job has started on this node since slurmctld reported it idle; the next record will "
           "show "
           "its state";
  }
  const char* what = view.bases == kInUse  ? "whether this node is partially or fully allocated"
                     : view.may_be("DOWN") ? "whether this node is idle, in use or down"
                                           : "whether jobs still use this node";
  return fmt::format(
      "a single-node query of slurmctld does not show {}{}", what,
      facts.jobs ? std::string{"; the next full query will determine it (slurm.confirmInterval)"}
                 : ", and slurmlet cannot read this machine's jobs" +
                       (facts.jobs_problem.empty() ? "" : ": " + facts.jobs_problem));
}

}  // namespace

std::string camel_case(const std::string& slurm_word) {
  std::string out;
  for (const auto part : split(slurm_word, '_')) {
    if (!part.empty()) {
      out += to_upper(part.substr(0, 1)) + to_lower(part.substr(1));
    }
  }
  return out;
}

std::optional<std::int64_t> usable_cpus(const HostFacts& facts) {
  if (!facts.slurm.record) {
    return std::nullopt;
  }
  const SlurmNodeRecord& record = *facts.slurm.record;
  if (record.effective_cpus.value_or(0) > 0) {
    return record.effective_cpus;
  }
  if (!record.cpus) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(0, *record.cpus - facts.slurm_conf.core_spec_cpus);
}

SlurmView slurm_view(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  if (!slurm.record && !slurm.failure) {
    return {Knowledge::kNotAskedYet, vocabulary::kNotAskedYet,
            "slurmctld has not been queried yet"};
  }
  if (!slurm.record || slurm.stale) {
    return unknown_view(facts);
  }
  SlurmView view;
  view.knowledge = Knowledge::kKnown;
  view.bases = bases_of(facts);
  view.use = use_of(facts, view.bases);
  if (view.bases.size() > 1) {
    view.reason = vocabulary::kNotConfirmed;
    view.message = what_is_open(view, facts);
  }
  return view;
}

SlurmState known_state(const HostFacts& facts) {
  const std::set<std::string> bases = bases_of(facts);
  return {bases.size() == 1 ? *bases.begin() : "UNKNOWN", facts.slurm.record->state.flags};
}

bool needs_confirmation(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  // It counts beside the jobs that are seen here: without them it would do so for one interval of
  // the cadence only.
  return facts.jobs && slurm.record && !slurm.stale &&
         slurm.record->kind != AnswerKind::kFullDump && bases_of_answer(facts).size() > 1;
}

bool jobs_tell_state(const HostFacts& facts) {
  return !facts.slurm.failure && jobs_show_state(facts);
}

Allocation allocation(const HostFacts& facts) {
  const SlurmView view = slurm_view(facts);
  if (view.knowledge == Knowledge::kKnown) {
    const SlurmNodeRecord& record = *facts.slurm.record;
    const SlurmNodeRecord* told =
        record.kind == AnswerKind::kFullDump ? &record : confirming(facts);
    const bool told_since = jobs_told_since(facts) || began_since(facts);
    if (told != nullptr && !told_since && (told == &record || view.bases.size() == 1)) {
      const auto& mib = told->allocated_memory_mib;
      return {told->allocated_cpus, mib ? std::optional{bytes_of_mib(*mib)} : std::nullopt};
    }
    // What a completing job held is free before its epilog has ended.
    if (!steps_run(facts) && std::none_of(view.bases.begin(), view.bases.end(), is_in_use)) {
      return {0, 0};
    }
  }
  if (facts.slurm_conf.jobs_are_contained && steps_run(facts)) {
    return {facts.jobs->allocated_cpus, facts.jobs->allocated_memory_bytes};
  }
  return {};
}

}  // namespace slurmlet::node
