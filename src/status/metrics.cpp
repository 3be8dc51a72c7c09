#include "status/metrics.h"

#include <utility>

namespace slurmlet::status {

namespace {

using podapi::counter;
using podapi::gauge;
using podapi::labelled;
using podapi::MetricFamily;

void add_api_requests(std::vector<MetricFamily>& out, const kube::RequestCounter& requests) {
  MetricFamily calls =
      counter("slurmlet_api_requests_total",
              "Requests to the API server by verb and HTTP status (0: no answer).", {});
  for (const auto& [key, count] : requests.snapshot()) {
    calls.samples.push_back(
        {{{"verb", key.first}, {"code", std::to_string(key.second)}}, static_cast<double>(count)});
  }
  out.push_back(std::move(calls));
}

void add_slowed_turns(std::vector<MetricFamily>& out, const SlowedTurns& slowed) {
  out.push_back(
      counter("slurmlet_slowed_turns_total",
              "Iterations of a thread's loop that were delayed because there were too many: the "
              "log says what woke it.",
              {labelled("thread", "main", slowed.main), labelled("thread", "lease", slowed.lease),
               labelled("thread", "endpoint", slowed.endpoint)}));
}

void add_node(std::vector<MetricFamily>& out, const Report& report, const sync::LeaseStatus& lease,
              Now now) {
  out.push_back(gauge("slurmlet_node_registered",
                      "1 while the Node is registered and belongs to this machine.",
                      report.registered ? 1 : 0));
  out.push_back(gauge("slurmlet_node_gone_with_machine",
                      "1 while the Node is not registered again because its Machine was deleted.",
                      report.went_with_machine ? 1 : 0));
  if (lease.renewed_steady) {
    out.push_back(gauge("slurmlet_lease_age_seconds", "Time since the lease was last renewed.",
                        std::chrono::duration<double>(now.steady - *lease.renewed_steady).count()));
  }
  out.push_back(counter("slurmlet_pods_rejected_total",
                        "Pods bound to this node that were rejected (set to Failed).",
                        report.pods_rejected));
  out.push_back(counter("slurmlet_pods_finished_total",
                        "Deleted pods that were removed from this node.", report.pods_finished));
  out.push_back(gauge("slurmlet_pods_waiting",
                      "Pods not rejected yet because their controller keeps re-creating them.",
                      report.pods_waiting));
  out.push_back(
      gauge("slurmlet_pods_unreadable",
            "Pods bound to this node that are too large to be read and are therefore not rejected.",
            report.pods_unreadable));
  if (report.registered) {
    out.push_back(gauge("slurmlet_pod_watch_up",
                        "1 while the watch for pods bound to this node works.",
                        report.pods_seen ? 1 : 0));
  }
  out.push_back(counter("slurmlet_events_dropped_total",
                        "Events not sent because of the rate limit or an error.",
                        report.events_dropped));
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
  snapshot.metrics.push_back(
      gauge("slurmlet_build_info", "Always 1.", {labelled("version", SLURMLET_VERSION, 1)}));
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
