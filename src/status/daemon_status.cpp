#include "status/daemon_status.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "node/slurm_view.h"
#include "status/state_line.h"

namespace slurmlet::status {
namespace {

using Json = nlohmann::ordered_json;

// What is not known is null.
Json known(const std::string& text) { return text.empty() ? Json{} : Json(text); }
Json known(const std::optional<WallTime>& time) { return time ? Json(rfc3339(*time)) : Json{}; }
Json known_process(int pid) { return pid == 0 ? Json{} : Json(pid); }

Json certificate_json(const std::optional<WallTime>& not_after,
                      const std::optional<credentials::CertificateStatus>& requests,
                      const std::string& other_problem) {
  const bool pending = requests && requests->pending;
  const bool failed = requests && !requests->problem.empty();
  return {{"notAfter", known(not_after)},
          {"pendingRequest", pending ? known(requests->request_name) : Json{}},
          {"pendingSince", pending ? known(requests->pending_since) : Json{}},
          {"problem", known(failed ? requests->problem : other_problem)}};
}

Json slurm_json(const Report& report, WallTime now) {
  const auto& slurm = report.facts.slurm;
  const auto& record = slurm.record;
  Json age;
  if (slurm.answered_at) {
    age = std::chrono::duration_cast<std::chrono::seconds>(now - *slurm.answered_at).count();
  }
  Json failure;
  if (slurm.failure) {
    failure = slurm.failure_detail.empty() ? "no answer" : slurm.failure_detail;
  }
  return {{"node", known(record ? record->name : report.facts.slurm_conf.node_name)},
          {"cluster", known(report.facts.slurm_conf.cluster_name)},
          {"source", known(slurm.source)},
          {"state", record ? known(node::known_state(report.facts).raw()) : Json{}},
          {"answeredAt", known(slurm.answered_at)},
          {"ageSeconds", age},
          {"queried", slurm::pace_text(report.slurmctld.pace)},
          {"stale", slurm.stale},
          {"failure", failure}};
}

Json slurmd_json(const node::SlurmdFacts& slurmd) {
  using Liveness = node::SlurmdFacts::Liveness;
  const bool is_known = slurmd.liveness != Liveness::kUnknown;
  return {{"running", is_known ? Json(slurmd.liveness == Liveness::kRunning) : Json{}},
          {"pid", known_process(slurmd.pid)},
          {"version", known(slurmd.version)}};
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

Json problems_json(const Report& report, const sync::LeaseStatus& lease, bool lease_held) {
  Json out = Json::array();
  const auto add = [&out](const char* what, const std::string& detail) {
    if (!detail.empty()) {
      out.push_back({{"what", what}, {"detail", detail}});
    }
  };
  add("credential", credential_problem(report));
  if (!report.bootstrapping) {
    add("node", node_problem(report));
    if (!lease_held) {
      add("lease", lease.last_error.empty() ? "not renewed yet" : lease.last_error);
    }
  }
  return out;
}

}  // namespace

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

std::string daemon_status_json(const StatusInput& input) {
  const Report& report = input.report;
  const sync::LeaseStatus& lease = input.lease;
  const credentials::CertificateReport& certificates = report.certificates;
  const bool lease_held =
      lease.renewed_steady && input.now.steady - *lease.renewed_steady < input.lease_duration;
  const Json problems = problems_json(report, lease, lease_held);
  Json serving =
      certificate_json(certificates.serving_not_after, certificates.serving_requests, "");
  serving["selfSigned"] = certificates.serving_self_signed;
  const Json out{
      {"version", SLURMLET_VERSION},
      {"pid", ::getpid()},
      {"since", rfc3339(input.started)},
      {"node", known(report.node_name)},
      {"phase", report.bootstrapping ? "bootstrap" : "running"},
      {"summary", state_line(report, lease)},
      {"registered", report.registered},
      {"healthy", problems.empty()},
      {"problems", problems},
      {"apiServer", known(report.api_server)},
      {"refusal", known(report.refusal)},
      {"lease",
       {{"held", lease_held},
        {"renewedAt", known(lease.renewed_at)},
        {"error", known(lease.last_error)}}},
      {"ready",
       {{"status", known(report.ready.status)},
        {"reason", known(report.ready.reason)},
        {"message", known(report.ready.message)}}},
      {"slurm", slurm_json(report, input.now.wall)},
      {"slurmd", slurmd_json(report.facts.slurmd)},
      {"clientCertificate",
       certificate_json(certificates.client_not_after, certificates.client_requests,
                        certificates.client_problem)},
      {"servingCertificate", serving},
      {"endpoint", input.endpoint ? Json{{"port", input.endpoint->port},
                                         {"listening", input.endpoint->listening}}
                                  : Json{}},
      {"metal3", {{"uuid", known(report.metal3_uuid)}, {"providerID", known(report.provider_id)}}},
      {"pods",
       {{"rejected", report.pods_rejected},
        {"finished", report.pods_finished},
        {"waiting", report.pods_waiting}}}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

WallTime process_start() {
  static const WallTime kStart = std::chrono::system_clock::now();
  return kStart;
}

}  // namespace slurmlet::status
