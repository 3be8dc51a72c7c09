#include <utility>

#include "base/text.h"
#include "node/slurm_failure.h"
#include "node/slurm_view.h"
#include "status/metrics.h"

namespace slurmlet::status {
namespace {

using podapi::counter;
using podapi::gauge;
using podapi::labelled;
using podapi::MetricFamily;
using Liveness = node::SlurmdFacts::Liveness;

constexpr double kMiB = 1024.0 * 1024.0;

std::int64_t gpus_of(const std::vector<node::Gres>& gres) {
  std::int64_t count = 0;
  for (const auto& entry : gres) {
    count += entry.name == "gpu" ? entry.count : 0;
  }
  return count;
}

MetricFamily of_kinds(std::string name, std::string help, std::optional<double> total,
                      std::optional<double> allocated) {
  MetricFamily out = gauge(std::move(name), std::move(help), {});
  if (total) {
    out.samples.push_back(labelled("kind", "total", *total));
  }
  if (allocated) {
    out.samples.push_back(labelled("kind", "allocated", *allocated));
  }
  return out;
}

std::optional<double> number(const std::optional<std::int64_t>& value, double unit = 1) {
  return value ? std::optional{static_cast<double>(*value) * unit} : std::nullopt;
}

// What is stale is no longer shown: a gap in a graph is honest, a flat line is not.
void add_record(std::vector<MetricFamily>& out, const Report& report) {
  const auto& record = *report.facts.slurm.record;
  const node::HostFacts& facts = report.facts;
  const node::SlurmState state = node::known_state(facts);
  MetricFamily states =
      gauge("slurmlet_slurm_node_state",
            "1 for the base state (unknown while it is not confirmed) and for each flag "
            "that Slurm reports for this node.",
            {labelled("state", to_lower(state.base), 1)});
  for (const auto& flag : state.flags) {
    states.samples.push_back(labelled("state", to_lower(flag), 1));
  }
  out.push_back(std::move(states));

  const node::Allocation allocation = node::allocation(facts);
  out.push_back(of_kinds("slurmlet_slurm_cpus", "CPUs as reported by Slurm.", number(record.cpus),
                         number(allocation.cpus)));
  out.push_back(of_kinds("slurmlet_slurm_memory_bytes", "Memory as reported by Slurm.",
                         number(record.real_memory_mib, kMiB), number(allocation.memory_bytes)));
  const std::int64_t gpus = gpus_of(record.gres);
  if (gpus > 0) {
    out.push_back(of_kinds("slurmlet_slurm_gpus", "GPUs in the node's Gres.",
                           static_cast<double>(gpus),
                           static_cast<double>(gpus_of(record.gres_used))));
  }
}

// Who is asked, without what names this machine's paths and hosts.
std::string kind_of_source(const std::string& source) { return source.substr(0, source.find(' ')); }

// What the queries cost, by what carries them. Names of 0.1.0 stay for one release.
void add_costs(std::vector<MetricFamily>& out, const slurm::PollCounters& poll) {
  const auto add = [&out](const MetricFamily& family, const char* old_name = nullptr) {
    if (old_name != nullptr) {
      out.push_back({old_name, "Old name of " + family.name, family.type, family.samples});
    }
    out.push_back(family);
  };
  add(counter("slurmlet_slurmctld_queries_total",
              "Queries about this node; a record of slurmlet-operator is none.", poll.questions),
      "slurmlet_slurmctld_questions_total");
  add(counter("slurmlet_slurmctld_full_queries_total", "Of these, full queries.",
              poll.source.full_queries));
  add(counter("slurmlet_slurmctld_answers_total", "Queries with a usable answer.", poll.answers));
  add(counter("slurmlet_slurm_commands_total", "Slurm commands started for queries (sinfo).",
              poll.source.commands));
  add(counter("slurmlet_slurmrestd_requests_total", "HTTP requests to slurmrestd.",
              poll.source.requests));
  add(gauge("slurmlet_slurmctld_queries_left", "Queries left in the budget of the current hour.",
            poll.questions_left),
      "slurmlet_slurmctld_questions_left");
  if (poll.last_took) {
    add(gauge("slurmlet_slurmctld_last_query_seconds", "Duration of the last query.",
              std::chrono::duration<double>(*poll.last_took).count()),
        "slurmlet_slurmctld_last_question_seconds");
  }
}

}  // namespace

void add_slurm_metrics(std::vector<MetricFamily>& out, const Report& report, Now now) {
  out.push_back(gauge("slurmlet_slurmd_up", "1 while slurmd is running on this machine.",
                      report.facts.slurmd.liveness == Liveness::kRunning ? 1 : 0));
  if (report.facts.slurm.answered_at) {
    const auto age = std::chrono::duration<double>(now.wall - *report.facts.slurm.answered_at);
    out.push_back(gauge("slurmlet_slurm_state_age_seconds",
                        "Time since slurmctld last answered about this node.", age.count()));
  }
  if (report.slurmctld.answer_lasts) {
    out.push_back(gauge("slurmlet_slurm_state_max_age_seconds",
                        "Age up to which the last answer counts.",
                        std::chrono::duration<double>(*report.slurmctld.answer_lasts).count()));
  }
  if (!report.facts.slurm.source.empty()) {
    out.push_back(gauge("slurmlet_slurm_source_info", "Source of this node's state.",
                        {labelled("source", kind_of_source(report.facts.slurm.source), 1)}));
  }
  add_costs(out, report.slurmctld);
  MetricFamily failures = counter("slurmlet_slurmctld_failures_total",
                                  "Queries without a usable answer, by cause.", {});
  for (const auto& [cause, count] : report.slurmctld.failures_by_cause) {
    failures.samples.push_back(labelled("cause", node::to_string(cause), count));
  }
  out.push_back(std::move(failures));
  if (report.facts.slurm.record && !report.facts.slurm.stale) {
    add_record(out, report);
  }
}

}  // namespace slurmlet::status
