// The daemon's answer for commands and for people.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "status/daemon_status.h"

namespace slurmlet::status {
namespace {

using kube::list_at;
using kube::member;
using kube::string_at;
using nlohmann::json;

class Lines {
 public:
  void add(const char* name, const std::string& value) {
    if (!value.empty()) {
      out += fmt::format("  {:<18} {}\n", name, value);
    }
  }
  std::string out;
};

std::string slurm_line(const json& slurm) {
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

std::string slurmd_line(const json& slurmd) {
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

std::string certificate_line(const json& certificate) {
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

std::string endpoint_line(const json& endpoint) {
  const auto port = kube::int_at(endpoint, "port");
  if (!port) {
    return "";
  }
  return kube::bool_at(endpoint, "listening")
             ? fmt::format("port {}", *port)
             : fmt::format("does not listen on port {}; the log says why", *port);
}

std::string to_text(const json& status) {
  Lines lines;
  lines.add("daemon",
            fmt::format("slurmlet {}, pid {}, since {}", string_at(status, "version"),
                        kube::int_at(status, "pid").value_or(0), string_at(status, "since")));
  lines.add("API server", string_at(status, "apiServer"));
  lines.add("node", kube::bool_at(status, "registered") ? "registered"
                    : string_at(status, "phase") == "bootstrap"
                        ? "not registered: no credential yet"
                        : "not registered");
  for (const json& problem : list_at(status, "problems")) {
    lines.add("problem",
              fmt::format("{}: {}", string_at(problem, "what"), string_at(problem, "detail")));
  }
  const json& lease = member(status, "lease");
  if (const std::string renewed = string_at(lease, "renewedAt"); !renewed.empty()) {
    lines.add("lease", fmt::format("{}, renewed {}",
                                   kube::bool_at(lease, "held") ? "held" : "not held", renewed));
  }
  const json& ready = member(status, "ready");
  if (const std::string value = string_at(ready, "status"); !value.empty()) {
    lines.add("Ready", fmt::format("{} ({}): {}", value, string_at(ready, "reason"),
                                   string_at(ready, "message")));
  }
  lines.add("Slurm", slurm_line(member(status, "slurm")));
  lines.add("slurmd", slurmd_line(member(status, "slurmd")));
  lines.add("client cert", certificate_line(member(status, "clientCertificate")));
  lines.add("serving cert", certificate_line(member(status, "servingCertificate")));
  lines.add("endpoint", endpoint_line(member(status, "endpoint")));
  const json& metal3 = member(status, "metal3");
  lines.add("metal3 uuid", string_at(metal3, "uuid"));
  lines.add("providerID", string_at(metal3, "providerID"));
  const json& pods = member(status, "pods");
  lines.add("pods", fmt::format("{} rejected, {} removed, {} waiting",
                                kube::int_at(pods, "rejected").value_or(0),
                                kube::int_at(pods, "finished").value_or(0),
                                kube::int_at(pods, "waiting").value_or(0)));
  return string_at(status, "summary") + "\n" + lines.out;
}

}  // namespace

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
  const json& problems = list_at(*status, "problems");
  if (!problems.empty()) {
    out.problem = string_at(problems.front(), "detail");
  }
  const json& serving = member(*status, "servingCertificate");
  out.serving_request = string_at(serving, "pendingRequest");
  out.serving_problem = string_at(serving, "problem");
  return out;
}

}  // namespace slurmlet::status
