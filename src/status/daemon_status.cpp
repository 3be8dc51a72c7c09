#include "status/daemon_status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "node/slurm_view.h"
#include "status/state_line.h"

namespace slurmlet::status {
namespace {

using kube::list_at;
using kube::member;
using kube::string_at;
using Json = nlohmann::ordered_json;

constexpr const char* kOperator = "slurmlet-operator";  // which queries for all nodes

// Unknown values are null.
Json known(const std::string& text) { return text.empty() ? Json{} : Json(text); }
Json known(const std::optional<WallTime>& time) { return time ? Json(rfc3339(*time)) : Json{}; }
Json known_process(int pid) { return pid == 0 ? Json{} : Json(pid); }

Json certificate_json(const std::optional<WallTime>& not_after,
                      const std::optional<credentials::CertificateStatus>& requests,
                      const std::string& other_problem) {
  const bool pending = requests && requests->pending_since.has_value();
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
          {"queried",
           slurm.source == kOperator ? Json{} : Json(slurm::pace_text(report.slurmctld.pace))},
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

Json problems_json(const StatusInput& input, bool lease_held) {
  const Report& report = input.report;
  Json out = Json::array();
  const auto add = [&out](const char* what, const std::string& detail) {
    if (!detail.empty()) {
      out.push_back({{"what", what}, {"detail", detail}});
    }
  };
  add("credential", credential_problem(report));
  if (!report.bootstrapping) {
    add("node", node_problem(report, input.lease_duration, input.now.steady));
    if (!lease_held) {
      const std::string& error = input.lease.last_error;
      add("lease", error.empty() ? "not renewed yet" : error);
    }
  }
  return out;
}

std::string slurm_line(const nlohmann::json& slurm) {
  const std::string state = string_at(slurm, "state");
  const std::string failure = string_at(slurm, "failure");
  if (state.empty()) {
    return failure.empty() ? "" : "no answer yet: " + failure;
  }
  std::string out = fmt::format("{} is {}", string_at(slurm, "node"), state);
  if (const std::string cluster = string_at(slurm, "cluster"); !cluster.empty()) {
    out += " in cluster " + cluster;
  }
  out += ", by " + string_at(slurm, "source");
  if (const auto age = kube::int_at(slurm, "ageSeconds")) {
    out += *age < 120 ? fmt::format(" {} s ago", *age) : fmt::format(" {} min ago", *age / 60);
  }
  if (const std::string queried = string_at(slurm, "queried"); !queried.empty()) {
    out += ", queried " + queried;
  }
  return failure.empty() ? out : fmt::format("{}; the last query failed: {}", out, failure);
}

std::string slurmd_line(const nlohmann::json& slurmd) {
  if (kube::find(slurmd, "running") == nullptr) {
    return "";
  }
  if (!kube::bool_at(slurmd, "running")) {
    return "not running";
  }
  const std::string version = string_at(slurmd, "version");
  return fmt::format("running, pid {}{}", kube::int_at(slurmd, "pid").value_or(0),
                     version.empty() ? "" : ", " + version);
}

std::string certificate_line(const nlohmann::json& certificate) {
  const bool self_signed = kube::bool_at(certificate, "selfSigned");
  if (const std::string request = string_at(certificate, "pendingRequest"); !request.empty()) {
    return fmt::format("{} is waiting for approval: kubectl certificate approve {}{}", request,
                       request, self_signed ? " (a self-signed one is used until then)" : "");
  }
  if (std::string problem = string_at(certificate, "problem"); !problem.empty()) {
    return problem;
  }
  const std::string not_after = string_at(certificate, "notAfter");
  return not_after.empty() ? "" : self_signed ? "self-signed" : "valid until " + not_after;
}

std::string endpoint_line(const nlohmann::json& endpoint) {
  const auto port = kube::int_at(endpoint, "port");
  if (!port) {
    return "";
  }
  return kube::bool_at(endpoint, "listening")
             ? fmt::format("port {}", *port)
             : fmt::format("does not listen on port {}; the log says why", *port);
}

std::string to_text(const nlohmann::json& status) {
  std::string out = string_at(status, "summary") + "\n";
  const auto add = [&out](const char* name, const std::string& value) {
    if (!value.empty()) {
      out += fmt::format("  {:<18} {}\n", name, value);
    }
  };
  add("daemon", fmt::format("slurmlet {}, pid {}, since {}", string_at(status, "version"),
                            kube::int_at(status, "pid").value_or(0), string_at(status, "since")));
  add("API server", string_at(status, "apiServer"));
  add("node", kube::bool_at(status, "registered")         ? "registered"
              : string_at(status, "phase") == "bootstrap" ? "not registered: no credential yet"
                                                          : "not registered");
  for (const nlohmann::json& problem : list_at(status, "problems")) {
    add("problem", fmt::format("{}: {}", string_at(problem, "what"), string_at(problem, "detail")));
  }
  const nlohmann::json& lease = member(status, "lease");
  if (const std::string renewed = string_at(lease, "renewedAt"); !renewed.empty()) {
    add("lease",
        fmt::format("{}, renewed {}", kube::bool_at(lease, "held") ? "held" : "not held", renewed));
  }
  const nlohmann::json& ready = member(status, "ready");
  if (const std::string value = string_at(ready, "status"); !value.empty()) {
    add("Ready",
        fmt::format("{} ({}): {}", value, string_at(ready, "reason"), string_at(ready, "message")));
  }
  add("Slurm", slurm_line(member(status, "slurm")));
  add("slurmd", slurmd_line(member(status, "slurmd")));
  add("client cert", certificate_line(member(status, "clientCertificate")));
  add("serving cert", certificate_line(member(status, "servingCertificate")));
  add("endpoint", endpoint_line(member(status, "endpoint")));
  const nlohmann::json& metal3 = member(status, "metal3");
  add("metal3 uuid", string_at(metal3, "uuid"));
  add("providerID", string_at(metal3, "providerID"));
  const nlohmann::json& pods = member(status, "pods");
  add("pods",
      fmt::format("{} rejected, {} removed, {} waiting", kube::int_at(pods, "rejected").value_or(0),
                  kube::int_at(pods, "finished").value_or(0),
                  kube::int_at(pods, "waiting").value_or(0)));
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
  if (requests && requests->pending_since) {
    return "waiting for approval of " + requests->request_name;
  }
  return requests && !requests->problem.empty() ? requests->problem : "waiting for the API server";
}

std::string node_problem(const Report& report, Duration lease_duration, SteadyTime now) {
  if (report.registered) {
    return report.api_error && now - report.api_error_since >= lease_duration
               ? "not written: " + report.api_error->message
               : report.node_drift;
  }
  if (!report.block_reason.empty()) {
    return report.block_reason;
  }
  return report.api_error ? report.api_error->message : "the Node is not registered yet";
}

std::string daemon_status_json(const StatusInput& input) {
  const Report& report = input.report;
  const sync::LeaseStatus& lease = input.lease;
  const credentials::CertificateReport& certificates = report.certificates;
  const bool lease_held =
      lease.renewed_steady && input.now.steady - *lease.renewed_steady < input.lease_duration;
  const Json problems = problems_json(input, lease_held);
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
      {"refusal", known(report.block_reason)},
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

Result<DaemonStatus> read_daemon_status(const std::string& text) {
  const auto status = kube::parse_json(text);
  if (!status || string_at(*status, "node").empty() || string_at(*status, "phase").empty()) {
    return Error{Code::kInvalid, "the answer is not slurmlet's"};
  }
  DaemonStatus out;
  out.json = text;
  out.text = to_text(*status);
  out.node = string_at(*status, "node");
  out.phase = string_at(*status, "phase");
  out.summary = string_at(*status, "summary");
  out.pid = static_cast<int>(kube::int_at(*status, "pid").value_or(0));
  out.registered = kube::bool_at(*status, "registered");
  out.healthy = kube::bool_at(*status, "healthy");
  out.lease_held = kube::bool_at(member(*status, "lease"), "held");
  const nlohmann::json& problems = list_at(*status, "problems");
  if (!problems.empty()) {
    out.problem = string_at(problems.front(), "detail");
  }
  const nlohmann::json& serving = member(*status, "servingCertificate");
  out.serving_request = string_at(serving, "pendingRequest");
  out.serving_problem = string_at(serving, "problem");
  return out;
}

WallTime process_start() {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  static const auto kWall = system_clock::now();
  static const auto kSteady = steady_clock::now();
  // The clock may have been set since the start. Rounded, since two clocks cannot be read at once.
  const auto step = (system_clock::now() - kWall) - (steady_clock::now() - kSteady);
  return kWall + std::chrono::round<std::chrono::seconds>(step);
}

}  // namespace slurmlet::status
