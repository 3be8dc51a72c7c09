#include "node/slurm_view.h"

#include <fmt/format.h>

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
  return fmt::format(fmt::runtime(kind.what), fmt::arg("slurmctld", controllers(facts)),
                     fmt::arg("host", "this node"));
}

SlurmView unknown_view(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  SlurmView view;
  view.knowledge = Knowledge::kUnknown;
  if (slurm.failure) {
    const FailureKind& kind = kind_of(*slurm.failure);
    view.reason = kind.reason;
    view.what = what_failed(kind, facts);
    view.fix = kind.fix;
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
  view.message = view.fix.empty() ? view.what : view.what + "; " + view.fix;
  return view;
}

bool steps_run(const HostFacts& facts) { return facts.jobs && facts.jobs->jobs > 0; }

// slurmrestd 23.02 says ALLOCATED of a node that is in use in part; the figures are right.
std::string reported_base(const SlurmNodeRecord& record, const HostFacts& facts) {
  const auto cpus = usable_cpus(facts);
  const bool in_part =
      cpus && record.allocated_cpus.value_or(0) > 0 && *record.allocated_cpus < *cpus;
  return in_part && record.state.base == "ALLOCATED" ? "MIXED" : record.state.base;
}

// slurmctld frees a node only when the steps there have ended, and starts none on one that drains.
bool job_started_since(const HostFacts& facts) {
  const SlurmState& state = facts.slurm.record->state;
  return state.base == "IDLE" && !state.has("COMPLETING") && !state.has("DRAIN") &&
         steps_run(facts);
}

// "" where it is not seen how much of the node is in use.
std::string base_by_jobs(const HostFacts& facts) {
  const auto cpus = usable_cpus(facts);
  if (!facts.jobs->allocated_cpus || !cpus) {
    return "";
  }
  if (*facts.jobs->allocated_cpus >= *cpus) {
    return "ALLOCATED";
  }
  return facts.slurm_conf.jobs_are_contained ? "MIXED" : "";
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
  const bool started = job_started_since(facts);
  view.base = started ? base_by_jobs(facts) : reported_base(*slurm.record, facts);
  view.in_use = view.is("ALLOCATED") || view.is("MIXED") || slurm.record->state.has("COMPLETING") ||
                steps_run(facts);
  if (started && view.base.empty()) {
    view.reason = vocabulary::kJobStarted;
    view.message =
        "a job has started on this node since slurmctld reported it idle; its next answer will "
        "show how much of the node is in use";
  }
  return view;
}

SlurmState known_state(const HostFacts& facts) {
  SlurmState state = facts.slurm.record->state;
  const std::string by_jobs = job_started_since(facts) ? base_by_jobs(facts) : "";
  state.base = by_jobs.empty() ? reported_base(*facts.slurm.record, facts) : by_jobs;
  return state;
}

Allocation allocation(const HostFacts& facts) {
  const bool is_known = slurm_view(facts).knowledge == Knowledge::kKnown;
  if (is_known && !job_started_since(facts)) {
    const SlurmNodeRecord& record = *facts.slurm.record;
    const auto& mib = record.allocated_memory_mib;
    return {record.allocated_cpus, mib ? std::optional{bytes_of_mib(*mib)} : std::nullopt};
  }
  if (facts.slurm_conf.jobs_are_contained && steps_run(facts)) {
    return {facts.jobs->allocated_cpus, facts.jobs->allocated_memory_bytes};
  }
  return {};
}

}  // namespace slurmlet::node
