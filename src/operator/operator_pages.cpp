#include "operator/operator_pages.h"

#include <tuple>

namespace slurmlet::op {
namespace {

using podapi::counter;
using podapi::gauge;
using podapi::labelled;
using podapi::MetricFamily;

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void add_machines(const MachineStatus& machines, std::vector<MetricFamily>& out) {
  out.push_back(gauge("slurmlet_operator_machines_waiting",
                      "Machines that are being deleted and wait for their jobs.",
                      machines.waiting));
  out.push_back(
      gauge("slurmlet_operator_machine_jobs", "Jobs that these Machines wait for.", machines.jobs));
  out.push_back(gauge("slurmlet_operator_controllers_without_backup",
                      "Machines of slurmctld that wait for a backup slurmctld.",
                      machines.without_backup.size()));
  if (machines.waiting_since) {
    out.push_back(gauge("slurmlet_operator_machines_waiting_since_timestamp_seconds",
                        "When the deletion of the Machine began that waits longest, Unix time.",
                        in_seconds(machines.waiting_since->time_since_epoch())));
  }
  out.push_back(counter("slurmlet_operator_machine_actions_total",
                        "What was done for Machines that are being deleted.",
                        {labelled("action", "release", machines.released),
                         labelled("action", "requeue", machines.requeued),
                         labelled("action", "cancel", machines.cancelled),
                         labelled("action", "failure", machines.failures)}));
}

void add_health(const HealthStatus& health, std::vector<MetricFamily>& out) {
  out.push_back(gauge("slurmlet_operator_unhealthy_nodes",
                      "Slurm nodes with a condition of drainOn, by what became of them.",
                      {labelled("action", "drained", health.drained),
                       labelled("action", "limited", health.limited)}));
}

void add_leftovers(const OperatorStatus& status, std::vector<MetricFamily>& out) {
  out.push_back(counter("slurmlet_operator_nodes_deleted_total",
                        "Nodes deleted because their Machine had left them behind, by result.",
                        {labelled("result", "success", status.nodes_deleted),
                         labelled("result", "failure", status.node_deletion_failures)}));
}

void add_certificates(const OperatorStatus& status, std::vector<MetricFamily>& out) {
  out.push_back(gauge("slurmlet_operator_certificate_requests_waiting",
                      "Certificate requests of nodes that wait for a decision.",
                      status.certificates_waiting));
  out.push_back(counter("slurmlet_operator_certificate_approvals_total",
                        "Certificate requests that were approved, by result.",
                        {labelled("result", "success", status.certificates_approved),
                         labelled("result", "failure", status.certificate_failures)}));
}

void add_partitions(const ScaleStatus& scale, std::vector<MetricFamily>& out) {
  using P = PartitionStatus;
  constexpr std::tuple<const char*, const char*, std::int64_t P::*> kFamilies[] = {
      {"pending_jobs",
       "Pending jobs that wait for nodes of the partition; elements of arrays count.", &P::jobs},
      {"pending_nodes", "Nodes that these jobs need at least.", &P::nodes},
      {"pending_gpus", "GPUs that these jobs need.", &P::gpus},
      {"idle_nodes", "Nodes of the partition that are idle.", &P::idle},
      {"allocated_nodes", "Nodes of the partition that run jobs.", &P::allocated}};
  for (const auto& [name, help, member] : kFamilies) {
    MetricFamily family = gauge(std::string{"slurmlet_operator_partition_"} + name, help, {});
    for (const auto& [partition, status] : scale.partitions) {
      family.samples.push_back(labelled("partition", partition, status.*member));
    }
    out.push_back(std::move(family));
  }
}

void add_scale(const ScaleStatus& scale, std::vector<MetricFamily>& out) {
  add_partitions(scale, out);
  MetricFamily wanted = gauge("slurmlet_operator_partition_wanted_machines",
                              "Machines that the partition's queue and jobs need of a "
                              "MachineDeployment, within its minimum and maximum.",
                              {});
  MetricFamily replicas = gauge("slurmlet_operator_machinedeployment_replicas",
                                "Machines that a scaled MachineDeployment is to have.", {});
  MetricFamily most = gauge("slurmlet_operator_machinedeployment_max_size",
                            "Machines that it may have at most.", {});
  MetricFamily late = gauge("slurmlet_operator_machinedeployment_late_machines",
                            "Machines of it that are no node in service, or none that responds, "
                            "although their boot-timeout has passed.",
                            {});
  for (const auto& group : scale.groups) {
    for (const auto& partition : group.partitions) {
      wanted.samples.push_back({{{"partition", partition}, {"machinedeployment", group.name}},
                                static_cast<double>(group.wanted)});
    }
    replicas.samples.push_back(labelled("machinedeployment", group.name, group.replicas));
    most.samples.push_back(labelled("machinedeployment", group.name, group.max));
    late.samples.push_back(labelled("machinedeployment", group.name, group.late));
  }
  MetricFamily unknown =
      gauge("slurmlet_operator_jobs_unknown_reason",
            "Pending jobs whose reason is not known, so they are no demand.", {});
  for (const auto& [reason, jobs] : scale.unknown_reasons) {
    unknown.samples.push_back(labelled("reason", reason, jobs));
  }
  out.push_back(std::move(wanted));
  out.push_back(std::move(replicas));
  out.push_back(std::move(most));
  out.push_back(std::move(late));
  out.push_back(std::move(unknown));
  out.push_back(gauge("slurmlet_operator_jobs_too_large",
                      "Pending jobs that no machine of a MachineDeployment can hold.",
                      scale.too_large));
  out.push_back(counter(
      "slurmlet_operator_scale_actions_total", "Changes of the replicas of MachineDeployments.",
      {labelled("action", "up", scale.ups), labelled("action", "down", scale.downs),
       labelled("action", "failure", scale.failures)}));
}

}  // namespace

std::vector<MetricFamily> operator_metrics(const OperatorStatus& status) {
  std::vector<MetricFamily> out;
  out.push_back(gauge("slurmlet_operator_leader", "1 on the operator that acts, else 0.",
                      status.leads ? 1 : 0));
  out.push_back(gauge("slurmlet_operator_nodes", "Nodes that slurmlets registered.", status.nodes));
  out.push_back(gauge("slurmlet_operator_slurm_nodes", "Nodes in slurmctld's last dump.",
                      status.slurm_nodes));
  out.push_back(gauge("slurmlet_operator_records_waiting", "Nodes whose record is to be written.",
                      status.records_waiting));
  out.push_back(counter("slurmlet_operator_dumps_total",
                        "Queries of slurmctld for all nodes, by result.",
                        {labelled("result", "success", status.dumps),
                         labelled("result", "failure", status.dump_failures)}));
  out.push_back(counter("slurmlet_operator_dumps_unchanged_total",
                        "Successful ones that slurmrestd answered with 304 Not Modified.",
                        status.dumps_unchanged));
  out.push_back(gauge("slurmlet_operator_dump_seconds", "How long the last good dump took.",
                      in_seconds(status.dump_took)));
  if (status.dumped_at) {
    out.push_back(gauge("slurmlet_operator_dump_timestamp_seconds",
                        "When the last good dump began, Unix time.",
                        in_seconds(status.dumped_at->time_since_epoch())));
  }
  out.push_back(counter("slurmlet_operator_record_writes_total",
                        "Records written to Nodes, by result.",
                        {labelled("result", "success", status.record_writes),
                         labelled("result", "failure", status.record_failures)}));
  out.push_back(counter("slurmlet_operator_node_updates_total",
                        "Nodes changed in Slurm, by what was done.",
                        {labelled("action", "drain", status.changes.drains),
                         labelled("action", "undrain", status.changes.undrains),
                         labelled("action", "delete", status.changes.deletions),
                         labelled("action", "failure", status.changes.failures)}));
  MetricFamily ready = gauge("slurmlet_operator_ready", "1 or 0 for each check of /readyz.", {});
  for (const auto& check : operator_checks(status)) {
    ready.samples.push_back(labelled("check", check.name, check.ok ? 1 : 0));
  }
  out.push_back(std::move(ready));
  add_machines(status.machines, out);
  if (status.scale != nullptr) {
    add_scale(*status.scale, out);
  }
  add_health(status.health, out);
  out.push_back(gauge("slurmlet_operator_machines_sleeping",
                      "Machines whose host was powered down for Slurm.", status.machines_sleeping));
  add_leftovers(status, out);
  add_certificates(status, out);
  return out;
}

std::vector<podapi::Check> operator_checks(const OperatorStatus& status) {
  const bool is_listed = status.nodes_known || !status.leads;  // a standby watches nothing
  return {{"apiserver", is_listed && status.api_problem.empty(),
           is_listed ? status.api_problem : "the Nodes are not known yet"},
          {"records", status.record_problem.empty(), status.record_problem},
          {"slurmctld", status.dump_problem.empty(), status.dump_problem},
          {"machines", status.machines.problem.empty(), status.machines.problem}};
}

podapi::Response operator_page(const podapi::RequestHead& head, const std::string& name,
                               const OperatorStatus& status) {
  if (head.path == "/metrics" && (head.method == "GET" || head.method == "HEAD")) {
    return {200, podapi::kMetricsContentType, podapi::metrics_text(operator_metrics(status)), {}};
  }
  podapi::Snapshot snapshot;
  snapshot.node_name = name;
  snapshot.checks = operator_checks(status);
  return podapi::handle({head.method, head.path}, snapshot);
}

}  // namespace slurmlet::op
