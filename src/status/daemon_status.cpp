#include "status/daemon_status.h"

#include <unistd.h>

#include "base/rfc3339.h"
#include "node/slurm_view.h"
#include "status/slurm_facts.h"
#include "status/state_line.h"

namespace slurmlet::status {
namespace {

std::string time_text(const std::optional<WallTime>& time) { return time ? rfc3339(*time) : ""; }

std::optional<std::string> optional_time(const std::optional<WallTime>& time) {
  return time ? std::optional{rfc3339(*time)} : std::nullopt;
}

CertificateState certificate_state(const std::optional<WallTime>& not_after,
                                   const std::optional<credentials::CertificateStatus>& requests) {
  CertificateState out;
  out.not_after = optional_time(not_after);
  if (requests) {
    out.problem = requests->problem;
    if (requests->pending) {
      out.pending_request = requests->request_name;
      out.pending_since = optional_time(requests->pending_since);
    }
  }
  return out;
}

void add_slurm(DaemonStatus& out, const Report& report, WallTime now) {
  const auto& slurm = report.slurm;
  out.slurm_node = report.slurm_conf.node_name;
  out.slurm_cluster = report.slurm_conf.cluster_name;
  out.slurm_source = slurm.source;
  if (slurm.record) {
    out.slurm_node = slurm.record->name;
    out.slurm_state = node::known_state(slurm_facts(report)).raw();
  }
  out.slurm_answered_at = time_text(slurm.answered_at);
  if (slurm.answered_at) {
    out.slurm_age_seconds =
        std::chrono::duration_cast<std::chrono::seconds>(now - *slurm.answered_at).count();
  }
  out.slurm_stale = slurm.stale;
  if (slurm.failure) {
    out.slurm_failure = slurm.failure_detail.empty() ? "no answer" : slurm.failure_detail;
  }
  using Liveness = node::SlurmdFacts::Liveness;
  if (report.slurmd.liveness != Liveness::kUnknown) {
    out.slurmd_running = report.slurmd.liveness == Liveness::kRunning;
  }
  out.slurmd_pid = report.slurmd.pid;
  out.slurmd_version = report.slurmd.version;
}

std::string credential_problem(const Report& report) {
  const auto& certificates = report.certificates;
  if (!certificates.client_problem.empty()) {
    return certificates.client_problem;
  }
  if (!report.bootstrapping) {
    return "";
  }
  if (report.api_error) {
    return report.api_error->message;
  }
  const auto& requests = certificates.client_requests;
  if (requests && requests->pending) {
    return "waiting for approval of " + requests->request_name;
  }
  return requests && !requests->problem.empty() ? requests->problem : "waiting for the API server";
}

std::string node_problem(const Report& report) {
  if (report.registered) {
    return "";
  }
  if (!report.refusal.empty()) {
    return report.refusal;
  }
  return report.api_error ? report.api_error->message : "the Node is not registered yet";
}

void add_problems(DaemonStatus& out, const Report& report) {
  if (std::string why = credential_problem(report); !why.empty()) {
    out.problems.push_back({"credential", std::move(why)});
  }
  if (std::string why = node_problem(report); !why.empty() && !report.bootstrapping) {
    out.problems.push_back({"node", std::move(why)});
  }
  if (!out.lease_held && !report.bootstrapping) {
    out.problems.push_back(
        {"lease", out.lease_error.empty() ? "not renewed yet" : out.lease_error});
  }
}

}  // namespace

DaemonStatus daemon_status(const StatusInput& input) {
  const Report& report = input.report;
  const sync::LeaseStatus& lease = input.lease;
  DaemonStatus out;
  out.version = SLURMLET_VERSION;
  out.pid = ::getpid();
  out.since = rfc3339(input.started);
  out.node = report.node_name;
  out.phase = report.bootstrapping ? "bootstrap" : "running";
  out.summary = state_line(report, lease);
  out.registered = report.registered;
  out.api_server = report.api_server;
  out.refusal = report.refusal;
  out.lease_held =
      lease.renewed_steady && input.now.steady - *lease.renewed_steady < input.lease_duration;
  out.lease_renewed_at = time_text(lease.renewed_at);
  out.lease_error = lease.last_error;
  out.ready_status = report.ready.status;
  out.ready_reason = report.ready.reason;
  out.ready_message = report.ready.message;
  add_slurm(out, report, input.now.wall);
  const credentials::CertificateReport& certificates = report.certificates;
  out.client = certificate_state(certificates.client_not_after, certificates.client_requests);
  if (out.client.problem.empty()) {
    out.client.problem = certificates.client_problem;
  }
  out.serving = certificate_state(certificates.serving_not_after, certificates.serving_requests);
  out.serving.self_signed = certificates.serving_self_signed;
  out.metal3_uuid = report.metal3_uuid;
  out.provider_id = report.provider_id;
  out.pods_rejected = report.pods_rejected;
  out.pods_finished = report.pods_finished;
  out.pods_waiting = report.pods_waiting;
  add_problems(out, report);
  out.healthy = out.problems.empty();
  return out;
}

std::string why_unhealthy(const DaemonStatus& status) {
  return status.problems.empty() ? "" : status.problems.front().detail;
}

WallTime process_start() {
  static const WallTime kStart = std::chrono::system_clock::now();
  return kStart;
}

}  // namespace slurmlet::status
