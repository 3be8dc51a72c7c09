#include "app/metrics.h"

#include <sys/resource.h>

#include <utility>

namespace slurmlet::app {
namespace {

using podapi::MetricFamily;
using podapi::MetricType;
using Liveness = node::SlurmdFacts::Liveness;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// User and system time of `who` (getrusage(2)) in seconds.
double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

MetricFamily single(std::string name, MetricType type, std::string help, double value) {
  return {std::move(name), std::move(help), type, {{{}, value, ""}}};
}

void add_process(std::vector<MetricFamily>& out) {
  out.push_back(single("process_cpu_seconds_total", MetricType::kCounter,
                       "CPU time used by slurmlet itself.", cpu_seconds(RUSAGE_SELF)));
  out.push_back(single("slurmlet_children_cpu_seconds_total", MetricType::kCounter,
                       "CPU time used by ended children (sinfo, slurmd -V).",
                       cpu_seconds(RUSAGE_CHILDREN)));
}

void add_slurm(std::vector<MetricFamily>& out, const Report& report, Now now) {
  out.push_back(single("slurmlet_slurmd_up", MetricType::kGauge, "1 while slurmd runs here.",
                       report.slurmd.liveness == Liveness::kRunning ? 1 : 0));
  if (report.slurm.answered_at) {
    const auto age = std::chrono::duration<double>(now.wall - *report.slurm.answered_at);
    out.push_back(single("slurmlet_slurm_state_age_seconds", MetricType::kGauge,
                         "Time since slurmctld last answered about this node.", age.count()));
  }
  out.push_back(single("slurmlet_slurmctld_questions_total", MetricType::kCounter,
                       "Questions asked of slurmctld (one sinfo each).",
                       static_cast<double>(report.slurmctld.questions)));
  MetricFamily failures{"slurmlet_slurmctld_failures_total",
                        "Questions without a usable answer, by cause.",
                        MetricType::kCounter,
                        {}};
  for (const auto& [cause, count] : report.slurmctld.failures_by_cause) {
    failures.samples.push_back(
        {{{"cause", slurm::to_string(cause)}}, static_cast<double>(count), ""});
  }
  out.push_back(std::move(failures));
}

void add_kubernetes(std::vector<MetricFamily>& out, const Report& report,
                    const sync::LeaseStatus& lease, const kube::RequestCounter& requests, Now now) {
  out.push_back(single("slurmlet_node_registered", MetricType::kGauge,
                       "1 while the Node is registered and ours.", report.registered ? 1 : 0));
  if (lease.renewed_steady) {
    out.push_back(single(
        "slurmlet_lease_age_seconds", MetricType::kGauge, "Time since the lease was last renewed.",
        std::chrono::duration<double>(now.steady - *lease.renewed_steady).count()));
  }
  MetricFamily calls{"slurmlet_api_requests_total",
                     "Requests to the API server by verb and HTTP status (0: no answer).",
                     MetricType::kCounter,
                     {}};
  for (const auto& [key, count] : requests.snapshot()) {
    calls.samples.push_back({{{"verb", key.first}, {"code", std::to_string(key.second)}},
                             static_cast<double>(count),
                             ""});
  }
  out.push_back(std::move(calls));
  out.push_back(single("slurmlet_pods_rejected_total", MetricType::kCounter,
                       "Pods bound to this node that were failed.",
                       static_cast<double>(report.pods_rejected)));
  out.push_back(single("slurmlet_pods_finished_total", MetricType::kCounter,
                       "Deleted pods that were removed from this node.",
                       static_cast<double>(report.pods_finished)));
  out.push_back(single("slurmlet_pods_waiting", MetricType::kGauge,
                       "Pods held back because their controller keeps re-creating them.",
                       static_cast<double>(report.pods_waiting)));
  out.push_back(single("slurmlet_events_dropped_total", MetricType::kCounter,
                       "Events not sent because of the rate limit or an error.",
                       static_cast<double>(report.events_dropped)));
}

}  // namespace

podapi::Snapshot make_snapshot(const Report& report, const sync::LeaseStatus& lease,
                               const kube::RequestCounter& requests, Now now,
                               std::chrono::seconds lease_duration) {
  podapi::Snapshot snapshot;
  snapshot.node_name = report.node_name;
  const bool renewed = lease.renewed_steady && now.steady - *lease.renewed_steady < lease_duration;
  snapshot.checks.push_back(
      {"lease", renewed, lease.last_error.empty() ? "not renewed yet" : lease.last_error, false});
  snapshot.checks.push_back(
      {"node", report.registered,
       report.refusal.empty() ? "the Node is not registered yet" : report.refusal, false});
  snapshot.metrics.push_back({"slurmlet_build_info",
                              "Always 1.",
                              MetricType::kGauge,
                              {{{{"version", SLURMLET_VERSION}}, 1, ""}}});
  add_process(snapshot.metrics);
  add_kubernetes(snapshot.metrics, report, lease, requests, now);
  add_slurm(snapshot.metrics, report, now);
  return snapshot;
}

}  // namespace slurmlet::app
