#include "operator/operator_pages.h"

namespace slurmlet::op {
namespace {

using podapi::MetricFamily;
using podapi::MetricType;
using podapi::Sample;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

MetricFamily gauge(std::string name, std::string help, double value) {
  return {std::move(name), std::move(help), MetricType::kGauge, {Sample{{}, value, ""}}};
}

Sample counted(const char* label, const char* value, std::uint64_t count) {
  return {{{label, value}}, static_cast<double>(count), ""};
}

void add_machines(const MachineStatus& machines, std::vector<MetricFamily>& out) {
  out.push_back(gauge("slurmlet_operator_machines_waiting",
                      "Machines that are being deleted and wait for their jobs.",
                      static_cast<double>(machines.waiting)));
  out.push_back(gauge("slurmlet_operator_machine_jobs", "Jobs that these Machines wait for.",
                      static_cast<double>(machines.jobs)));
  if (machines.waiting_since) {
    out.push_back(gauge("slurmlet_operator_machines_waiting_since_timestamp_seconds",
                        "When the deletion of the Machine began that waits longest, Unix time.",
                        in_seconds(machines.waiting_since->time_since_epoch())));
  }
  out.push_back({"slurmlet_operator_machine_actions_total",
                 "What was done for Machines that are being deleted.",
                 MetricType::kCounter,
                 {counted("action", "release", machines.released),
                  counted("action", "delete_node", machines.records_deleted),
                  counted("action", "requeue", machines.requeued),
                  counted("action", "cancel", machines.cancelled),
                  counted("action", "failure", machines.failures)}});
}

void add_leftovers(const OperatorStatus& status, std::vector<MetricFamily>& out) {
  out.push_back({"slurmlet_operator_nodes_deleted_total",
                 "Nodes deleted because their Machine had left them behind, by result.",
                 MetricType::kCounter,
                 {counted("result", "success", status.nodes_deleted),
                  counted("result", "failure", status.node_deletion_failures)}});
}

void add_certificates(const OperatorStatus& status, std::vector<MetricFamily>& out) {
  out.push_back(gauge("slurmlet_operator_certificate_requests_waiting",
                      "Certificate requests of nodes that nobody has decided yet.",
                      static_cast<double>(status.certificates_waiting)));
  out.push_back({"slurmlet_operator_certificate_approvals_total",
                 "Certificate requests that were approved, by result.",
                 MetricType::kCounter,
                 {counted("result", "success", status.certificates_approved),
                  counted("result", "failure", status.certificate_failures)}});
}

}  // namespace

std::vector<MetricFamily> operator_metrics(const OperatorStatus& status) {
  std::vector<MetricFamily> out;
  out.push_back(gauge("slurmlet_operator_leader", "1 on the operator that acts, else 0.",
                      status.leads ? 1 : 0));
  out.push_back(gauge("slurmlet_operator_nodes", "Nodes that slurmlets registered.",
                      static_cast<double>(status.nodes)));
  out.push_back(gauge("slurmlet_operator_slurm_nodes", "Nodes in slurmctld's last dump.",
                      static_cast<double>(status.slurm_nodes)));
  out.push_back(gauge("slurmlet_operator_records_waiting", "Nodes whose record is to be written.",
                      static_cast<double>(status.records_waiting)));
  out.push_back({"slurmlet_operator_dumps_total",
                 "Queries of slurmctld for all nodes, by result.",
                 MetricType::kCounter,
                 {counted("result", "success", status.dumps),
                  counted("result", "failure", status.dump_failures)}});
  out.push_back({"slurmlet_operator_dumps_unchanged_total",
                 "Successful ones that slurmrestd answered with 304 Not Modified.",
                 MetricType::kCounter,
                 {Sample{{}, static_cast<double>(status.dumps_unchanged), ""}}});
  out.push_back(gauge("slurmlet_operator_dump_seconds", "How long the last good dump took.",
                      in_seconds(status.dump_took)));
  if (status.dumped_at) {
    out.push_back(gauge("slurmlet_operator_dump_timestamp_seconds",
                        "When the last good dump began, Unix time.",
                        in_seconds(status.dumped_at->time_since_epoch())));
  }
  out.push_back({"slurmlet_operator_record_writes_total",
                 "Records written to Nodes, by result.",
                 MetricType::kCounter,
                 {counted("result", "success", status.record_writes),
                  counted("result", "failure", status.record_failures)}});
  out.push_back(
      {"slurmlet_operator_node_updates_total",
       "Nodes changed in Slurm, by what was done.",
       MetricType::kCounter,
       {counted("action", "drain", status.drains), counted("action", "undrain", status.undrains),
        counted("action", "failure", status.update_failures)}});
  MetricFamily ready{
      "slurmlet_operator_ready", "1 or 0 for each check of /readyz.", MetricType::kGauge, {}};
  for (const auto& check : operator_checks(status)) {
    ready.samples.push_back({{{"check", check.name}}, check.ok ? 1.0 : 0.0, ""});
  }
  out.push_back(std::move(ready));
  add_machines(status.machines, out);
  add_leftovers(status, out);
  add_certificates(status, out);
  return out;
}

std::vector<podapi::Check> operator_checks(const OperatorStatus& status) {
  return {{"apiserver", status.nodes_known && status.api_problem.empty(),
           status.nodes_known ? status.api_problem : "the Nodes are not known yet", false},
          {"records", status.record_problem.empty(), status.record_problem, false},
          {"slurmctld", status.dump_problem.empty(), status.dump_problem, false},
          {"machines", status.machines.problem.empty(), status.machines.problem, false}};
}

std::optional<podapi::Response> OperatorPages::begin(podapi::RequestId, const podapi::Caller&,
                                                     const podapi::RequestHead& head, Now) {
  const OperatorStatus status = status_();
  if (head.path == "/metrics" && (head.method == "GET" || head.method == "HEAD")) {
    return podapi::Response{
        200, podapi::kMetricsContentType, podapi::metrics_text(operator_metrics(status)), {}};
  }
  podapi::Snapshot snapshot;
  snapshot.node_name = name_;
  snapshot.checks = operator_checks(status);
  return podapi::handle({head.method, head.path}, snapshot);
}

}  // namespace slurmlet::op
