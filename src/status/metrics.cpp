#include "status/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "node/slurm_failure.h"
#include "node/slurm_view.h"
#include "status/daemon_status.h"

namespace slurmlet::status {
namespace {

using podapi::counter;
using podapi::gauge;
using podapi::labelled;
using podapi::MetricFamily;
using Liveness = node::SlurmdFacts::Liveness;

constexpr double kMiB = 1024.0 * 1024.0;

double epoch_seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// User and system time of `who` (getrusage(2)) in seconds.
double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// The names and meanings of Prometheus' client libraries
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics).
void add_process_metrics(std::vector<MetricFamily>& out) {
  out.push_back(counter("process_cpu_seconds_total", "CPU time used by slurmlet itself.",
                        cpu_seconds(RUSAGE_SELF)));
  out.push_back(counter("slurmlet_children_cpu_seconds_total",
                        "CPU time used by terminated child processes (scontrol, slurmd -V).",
                        cpu_seconds(RUSAGE_CHILDREN)));
  if (const auto threads = list_directory("/proc/self/task")) {
    out.push_back(gauge("process_threads", "Threads of slurmlet.", threads->size()));
  }
  // proc(5): the first fields are the program's size and its resident part.
  const std::string statm = read_trimmed("/proc/self/statm");
  const auto pages = split(statm, ' ');
  const auto add_size = [&](const char* name, const char* help, std::size_t field) {
    const auto value = field < pages.size() ? parse_int<std::int64_t>(pages[field]) : std::nullopt;
    if (value) {
      out.push_back(gauge(name, help, *value * ::sysconf(_SC_PAGESIZE)));
    }
  };
  add_size("process_virtual_memory_bytes", "Virtual memory size.", 0);
  add_size("process_resident_memory_bytes", "Resident memory size.", 1);
  out.push_back(gauge("process_start_time_seconds", "Start time since the epoch.",
                      epoch_seconds(process_start())));
  if (const auto open = list_directory("/proc/self/fd")) {
    out.push_back(gauge("process_open_fds", "Open file descriptors.", open->size()));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    out.push_back(gauge("process_max_fds", "Limit of open file descriptors.", limit.rlim_cur));
  }
}

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

void add_node(std::vector<MetricFamily>& out, const Report& report, const sync::LeaseStatus& lease,
              Now now) {
  out.push_back(gauge("slurmlet_node_registered",
                      "1 while the Node is registered and belongs to this machine.",
                      report.registered ? 1 : 0));
  out.push_back(gauge("slurmlet_node_gone_with_machine",
                      "1 while the Node is not registered again because its Machine was deleted.",
                      report.deleted_with_machine ? 1 : 0));
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
                 report.certificates.client_problem});
  out.push_back(
      {"lease", renewed, lease.last_error.empty() ? "not renewed yet" : lease.last_error});
  const std::string node = node_problem(report, lease_duration, now.steady);
  out.push_back({"node", node.empty(), node});
  return out;
}

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

// Stale values are omitted, since a gap in a graph is more honest than a flat line.
void add_record(std::vector<MetricFamily>& out, const Report& report) {
  const auto& record = *report.facts.slurm.record;
  const node::HostFacts& facts = report.facts;
  const node::SlurmState state = node::known_state(facts);
  MetricFamily states =
      gauge("slurmlet_slurm_node_state",
            "1 for the base state and for each flag that Slurm reports for this node.",
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
    out.push_back(
        of_kinds("slurmlet_slurm_gpus",
                 "GPUs in the node's Gres, as Slurm counts them: a card or a slice of one.",
                 static_cast<double>(gpus), static_cast<double>(gpus_of(record.gres_used))));
  }
}

// The kind of source, without this machine's paths and hosts.
std::string kind_of_source(const std::string& source) { return source.substr(0, source.find(' ')); }

// The cost of queries, by source. Names of 0.1.0 stay for one release.
void add_costs(std::vector<MetricFamily>& out, const slurm::PollCounters& poll) {
  const auto add = [&out](const MetricFamily& family, const char* old_name = nullptr) {
    if (old_name != nullptr) {
      out.push_back({old_name, "Old name of " + family.name, family.type, family.samples});
    }
    out.push_back(family);
  };
  add(counter("slurmlet_slurmctld_queries_total",
              "Queries of slurmctld, records of slurmlet-operator not counted.", poll.queries),
      "slurmlet_slurmctld_questions_total");
  add(counter("slurmlet_slurmctld_answers_total", "Queries with a usable answer.", poll.answers));
  if (poll.last_took) {
    add(gauge("slurmlet_slurmctld_last_query_seconds", "Duration of the last query.",
              std::chrono::duration<double>(*poll.last_took).count()),
        "slurmlet_slurmctld_last_question_seconds");
  }
}

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

void add_those_with_samples(std::initializer_list<MetricFamily*> families,
                            std::vector<MetricFamily>& out) {
  for (auto* family : families) {
    if (!family->samples.empty()) {
      out.push_back(std::move(*family));
    }
  }
}

struct Kind {
  const char* name;
  std::optional<WallTime> not_after;
  const std::optional<credentials::CertificateStatus>& requests;
};

void add_certificate_metrics(std::vector<MetricFamily>& out,
                             const credentials::CertificateReport& certificates) {
  MetricFamily expiry = gauge("slurmlet_certificate_expiration_timestamp_seconds",
                              "When the certificate in use expires.", {});
  MetricFamily pending = gauge("slurmlet_certificate_request_pending",
                               "1 while a certificate request is waiting for approval.", {});
  MetricFamily requests =
      counter("slurmlet_certificate_requests_total", "Certificate requests sent.", {});
  MetricFamily renewals =
      counter("slurmlet_certificate_renewals_total", "Certificates issued to this daemon.", {});
  for (const Kind& kind :
       {Kind{"client", certificates.client_not_after, certificates.client_requests},
        Kind{"serving", certificates.serving_not_after, certificates.serving_requests}}) {
    const auto sample = [&kind](auto value) { return labelled("certificate", kind.name, value); };
    if (kind.not_after) {
      expiry.samples.push_back(sample(epoch_seconds(*kind.not_after)));
    }
    if (kind.requests) {
      pending.samples.push_back(sample(kind.requests->pending_since ? 1 : 0));
      requests.samples.push_back(sample(kind.requests->requests));
      renewals.samples.push_back(sample(kind.requests->renewals));
    }
  }
  add_those_with_samples({&expiry, &pending, &requests, &renewals}, out);
  if (certificates.serving_not_after) {
    out.push_back(gauge("slurmlet_serving_certificate_self_signed",
                        "1 while the kubelet endpoint presents a self-signed certificate.",
                        certificates.serving_self_signed ? 1 : 0));
  }
  out.push_back(counter("slurmlet_credential_reload_failures_total",
                        "Replaced credential files that were rejected.",
                        certificates.reload_failures));
}

void add_endpoint_metrics(std::vector<MetricFamily>& out, const EndpointCounters& endpoint) {
  MetricFamily listening =
      gauge("slurmlet_endpoint_listening",
            "1 while the endpoint is listening on its port, 0 while another program holds it.", {});
  MetricFamily failures = counter("slurmlet_endpoint_bind_failures_total",
                                  "Attempts to listen on the endpoint's port that failed.", {});
  for (const auto& [name, server] :
       {std::pair{"kubelet", &endpoint.server}, std::pair{"healthz", &endpoint.health}}) {
    if (*server) {
      listening.samples.push_back(labelled("endpoint", name, (*server)->listening ? 1 : 0));
      failures.samples.push_back(labelled("endpoint", name, (*server)->bind_failures));
    }
  }
  const podapi::ServerCounters server = endpoint.server.value_or(podapi::ServerCounters{});
  MetricFamily answers = counter("slurmlet_endpoint_requests_total",
                                 "Requests to the kubelet endpoint by HTTP status.", {});
  for (const auto& [status, number] : server.answers) {
    answers.samples.push_back(labelled("code", std::to_string(status), number));
  }
  add_those_with_samples({&listening, &failures, &answers}, out);
  out.push_back(gauge("slurmlet_endpoint_connections", "Open connections to the kubelet endpoint.",
                      server.open));
  out.push_back(counter(
      "slurmlet_endpoint_rejected_connections_total",
      "Connections to the kubelet endpoint that were rejected or closed early.",
      {labelled("cause", "limit", server.turned_away), labelled("cause", "evicted", server.evicted),
       labelled("cause", "handshake", server.handshakes_failed),
       labelled("cause", "timeout", server.timed_out),
       labelled("cause", "malformed", server.rejected_heads)}));
  out.push_back(
      counter("slurmlet_endpoint_handshakes_delayed_total",
              "TLS handshakes with the kubelet endpoint that were delayed by a rate limit: "
              "per address, per network, or for all unknown addresses together.",
              server.handshakes_delayed));
  out.push_back(counter("slurmlet_endpoint_reviews_total",
                        "TokenReviews and SubjectAccessReviews of clients of the kubelet endpoint.",
                        {labelled("kind", "token", endpoint.gate.token_reviews),
                         labelled("kind", "access", endpoint.gate.access_reviews)}));
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
  add_node(snapshot.metrics, report, lease, now);
  add_api_requests(snapshot.metrics, requests);
  add_slurm_metrics(snapshot.metrics, report, now);
  add_certificate_metrics(snapshot.metrics, report.certificates);
  add_endpoint_metrics(snapshot.metrics, endpoint);
  return snapshot;
}

}  // namespace slurmlet::status
