#include "status/metrics.h"

#include <utility>

namespace slurmlet::status {

using podapi::MetricFamily;
using podapi::MetricType;

MetricFamily single_metric(std::string name, MetricType type, std::string help, double value) {
  return {std::move(name), std::move(help), type, {{{}, value, ""}}};
}

namespace {

void add_api_requests(std::vector<MetricFamily>& out, const kube::RequestCounter& requests) {
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
}

void add_slowed_turns(std::vector<MetricFamily>& out, const SlowedTurns& slowed) {
  const auto sample = [](const char* thread, std::uint64_t value) {
    return podapi::Sample{{{"thread", thread}}, static_cast<double>(value), ""};
  };
  out.push_back({"slurmlet_slowed_turns_total",
                 "Iterations of a thread's loop that were delayed because there were too many: the "
                 "log says what woke it.",
                 MetricType::kCounter,
                 {sample("main", slowed.main), sample("lease", slowed.lease),
                  sample("endpoint", slowed.endpoint)}});
}

void add_node(std::vector<MetricFamily>& out, const Report& report, const sync::LeaseStatus& lease,
              Now now) {
  out.push_back(single_metric("slurmlet_node_registered", MetricType::kGauge,
                              "1 while the Node is registered and belongs to this machine.",
                              report.registered ? 1 : 0));
  out.push_back(
      single_metric("slurmlet_node_gone_with_machine", MetricType::kGauge,
                    "1 while the Node is not registered again because its Machine was deleted.",
                    report.went_with_machine ? 1 : 0));
  if (lease.renewed_steady) {
    out.push_back(single_metric(
        "slurmlet_lease_age_seconds", MetricType::kGauge, "Time since the lease was last renewed.",
        std::chrono::duration<double>(now.steady - *lease.renewed_steady).count()));
  }
  out.push_back(single_metric("slurmlet_pods_rejected_total", MetricType::kCounter,
                              "Pods bound to this node that were rejected (set to Failed).",
                              static_cast<double>(report.pods_rejected)));
  out.push_back(single_metric("slurmlet_pods_finished_total", MetricType::kCounter,
                              "Deleted pods that were removed from this node.",
                              static_cast<double>(report.pods_finished)));
  out.push_back(
      single_metric("slurmlet_pods_waiting", MetricType::kGauge,
                    "Pods not rejected yet because their controller keeps re-creating them.",
                    static_cast<double>(report.pods_waiting)));
  out.push_back(single_metric(
      "slurmlet_pods_unreadable", MetricType::kGauge,
      "Pods bound to this node that are too large to be read and are therefore not rejected.",
      static_cast<double>(report.pods_unreadable)));
  if (report.registered) {
    out.push_back(single_metric("slurmlet_pod_watch_up", MetricType::kGauge,
                                "1 while the watch for pods bound to this node works.",
                                report.pods_seen ? 1 : 0));
  }
  out.push_back(single_metric("slurmlet_events_dropped_total", MetricType::kCounter,
                              "Events not sent because of the rate limit or an error.",
                              static_cast<double>(report.events_dropped)));
}

std::vector<podapi::Check> checks(const Report& report, const sync::LeaseStatus& lease, Now now,
                                  std::chrono::seconds lease_duration) {
  const bool renewed = lease.renewed_steady && now.steady - *lease.renewed_steady < lease_duration;
  std::vector<podapi::Check> out;
  out.push_back({"credential", report.certificates.client_problem.empty(),
                 report.certificates.client_problem, false});
  out.push_back(
      {"lease", renewed, lease.last_error.empty() ? "not renewed yet" : lease.last_error, false});
  out.push_back({"node", report.registered,
                 report.refusal.empty() ? "the Node is not registered yet" : report.refusal,
                 false});
  return out;
}

}  // namespace

podapi::Snapshot make_snapshot(const Report& report, const sync::LeaseStatus& lease,
                               const kube::RequestCounter& requests,
                               const EndpointCounters& endpoint, Now now,
                               std::chrono::seconds lease_duration) {
  podapi::Snapshot snapshot;
  snapshot.node_name = report.node_name;
  snapshot.checks = checks(report, lease, now, lease_duration);
  snapshot.metrics.push_back({"slurmlet_build_info",
                              "Always 1.",
                              MetricType::kGauge,
                              {{{{"version", SLURMLET_VERSION}}, 1, ""}}});
  add_process_metrics(snapshot.metrics);
  add_slowed_turns(snapshot.metrics, report.slowed_turns);
  add_node(snapshot.metrics, report, lease, now);
  add_api_requests(snapshot.metrics, requests);
  add_slurm_metrics(snapshot.metrics, report, now);
  add_certificate_metrics(snapshot.metrics, report.certificates);
  add_endpoint_metrics(snapshot.metrics, endpoint);
  return snapshot;
}

}  // namespace slurmlet::status
