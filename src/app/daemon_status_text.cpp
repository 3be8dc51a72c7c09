// DaemonStatus as JSON, back, and as text.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/daemon_status.h"

namespace slurmlet::app {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json{} : Json(text); }

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json{};
}

const Json* member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? &*found : nullptr;
}

// The member of an object in the object; a null one if there is none.
const Json& part(const Json& object, const char* key) {
  static const Json kNothing = Json::object();
  const Json* found = member(object, key);
  return found != nullptr ? *found : kNothing;
}

std::string text_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

bool bool_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

std::optional<std::int64_t> int_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_number_integer() ? std::optional{found->get<std::int64_t>()}
                                                        : std::nullopt;
}

std::uint64_t count_at(const Json& object, const char* key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(int_at(object, key).value_or(0), 0));
}

std::optional<std::string> optional_at(const Json& object, const char* key) {
  std::string text = text_at(object, key);
  return text.empty() ? std::nullopt : std::optional{std::move(text)};
}

Json certificate_json(const CertificateState& state) {
  return {{"notAfter", value_or_null(state.not_after)},
          {"pendingRequest", text_or_null(state.pending_request)},
          {"pendingSince", value_or_null(state.pending_since)},
          {"problem", text_or_null(state.problem)}};
}

CertificateState certificate_from(const Json& object) {
  CertificateState out;
  out.not_after = optional_at(object, "notAfter");
  out.self_signed = bool_at(object, "selfSigned");
  out.pending_request = text_at(object, "pendingRequest");
  out.pending_since = optional_at(object, "pendingSince");
  out.problem = text_at(object, "problem");
  return out;
}

Json problems_json(const DaemonStatus& status) {
  Json out = Json::array();
  for (const auto& problem : status.problems) {
    out.push_back({{"what", problem.what}, {"detail", problem.detail}});
  }
  return out;
}

class Lines {
 public:
  void add(const char* name, const std::string& value) {
    if (!value.empty()) {
      out += fmt::format("  {:<18} {}\n", name, value);
    }
  }
  std::string out;
};

std::string age(std::int64_t seconds) {
  return seconds < 120 ? fmt::format("{} s", seconds) : fmt::format("{} min", seconds / 60);
}

std::string slurm_line(const DaemonStatus& status) {
  if (status.slurm_state.empty()) {
    return status.slurm_failure.empty() ? "" : "no answer yet: " + status.slurm_failure;
  }
  std::string out = fmt::format("{} is {}", status.slurm_node, status.slurm_state);
  if (!status.slurm_cluster.empty()) {
    out += " in cluster " + status.slurm_cluster;
  }
  out += ", by " + status.slurm_source;
  if (status.slurm_age_seconds) {
    out += fmt::format(" {} ago", age(*status.slurm_age_seconds));
  }
  if (!status.slurm_failure.empty()) {
    out += fmt::format("; the last question failed: {}", status.slurm_failure);
  }
  return out;
}

std::string slurmd_line(const DaemonStatus& status) {
  if (!status.slurmd_running) {
    return "";
  }
  return *status.slurmd_running
             ? fmt::format("runs, pid {}{}", status.slurmd_pid,
                           status.slurmd_version.empty() ? "" : ", " + status.slurmd_version)
             : "does not run";
}

std::string serving_line(const CertificateState& serving) {
  if (!serving.pending_request.empty()) {
    return fmt::format("{} waits for approval: kubectl certificate approve {}{}",
                       serving.pending_request, serving.pending_request,
                       serving.self_signed ? " (a self-signed one serves until then)" : "");
  }
  if (!serving.problem.empty()) {
    return serving.problem;
  }
  return !serving.not_after    ? ""
         : serving.self_signed ? "self-signed"
                               : "valid until " + *serving.not_after;
}

std::string client_line(const CertificateState& client) {
  if (!client.pending_request.empty()) {
    return fmt::format("{} waits for approval: kubectl certificate approve {}",
                       client.pending_request, client.pending_request);
  }
  if (!client.problem.empty()) {
    return client.problem;
  }
  return client.not_after ? "valid until " + *client.not_after : "";
}

}  // namespace

std::string to_json(const DaemonStatus& status) {
  Json out;
  out["version"] = status.version;
  out["pid"] = status.pid;
  out["since"] = status.since;
  out["node"] = status.node;
  out["phase"] = status.phase;
  out["summary"] = status.summary;
  out["registered"] = status.registered;
  out["healthy"] = status.healthy;
  out["problems"] = problems_json(status);
  out["apiServer"] = text_or_null(status.api_server);
  out["refusal"] = text_or_null(status.refusal);
  out["lease"] = {{"held", status.lease_held},
                  {"renewedAt", text_or_null(status.lease_renewed_at)},
                  {"error", text_or_null(status.lease_error)}};
  out["ready"] = {{"status", text_or_null(status.ready_status)},
                  {"reason", text_or_null(status.ready_reason)},
                  {"message", text_or_null(status.ready_message)}};
  out["slurm"] = {{"node", text_or_null(status.slurm_node)},
                  {"cluster", text_or_null(status.slurm_cluster)},
                  {"source", text_or_null(status.slurm_source)},
                  {"state", text_or_null(status.slurm_state)},
                  {"answeredAt", text_or_null(status.slurm_answered_at)},
                  {"ageSeconds", value_or_null(status.slurm_age_seconds)},
                  {"stale", status.slurm_stale},
                  {"failure", text_or_null(status.slurm_failure)}};
  out["slurmd"] = {{"running", value_or_null(status.slurmd_running)},
                   {"pid", status.slurmd_pid == 0 ? Json{} : Json(status.slurmd_pid)},
                   {"version", text_or_null(status.slurmd_version)}};
  out["clientCertificate"] = certificate_json(status.client);
  out["servingCertificate"] = certificate_json(status.serving);
  out["servingCertificate"]["selfSigned"] = status.serving.self_signed;
  out["metal3"] = {{"uuid", text_or_null(status.metal3_uuid)},
                   {"providerID", text_or_null(status.provider_id)}};
  out["pods"] = {{"rejected", status.pods_rejected},
                 {"finished", status.pods_finished},
                 {"waiting", status.pods_waiting}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<DaemonStatus> daemon_status_from_json(const std::string& text) {
  const Json object = Json::parse(text, nullptr, false);
  DaemonStatus out;
  out.node = object.is_object() ? text_at(object, "node") : "";
  out.phase = text_at(object, "phase");
  if (out.node.empty() || out.phase.empty()) {
    return Error{Code::kInvalid, "the answer is not slurmlet's"};
  }
  out.version = text_at(object, "version");
  out.pid = static_cast<int>(int_at(object, "pid").value_or(0));
  out.since = text_at(object, "since");
  out.summary = text_at(object, "summary");
  out.registered = bool_at(object, "registered");
  out.healthy = bool_at(object, "healthy");
  for (const auto& problem : part(object, "problems")) {
    out.problems.push_back({text_at(problem, "what"), text_at(problem, "detail")});
  }
  out.api_server = text_at(object, "apiServer");
  out.refusal = text_at(object, "refusal");
  const Json& lease = part(object, "lease");
  out.lease_held = bool_at(lease, "held");
  out.lease_renewed_at = text_at(lease, "renewedAt");
  out.lease_error = text_at(lease, "error");
  const Json& ready = part(object, "ready");
  out.ready_status = text_at(ready, "status");
  out.ready_reason = text_at(ready, "reason");
  out.ready_message = text_at(ready, "message");
  const Json& slurm = part(object, "slurm");
  out.slurm_node = text_at(slurm, "node");
  out.slurm_cluster = text_at(slurm, "cluster");
  out.slurm_source = text_at(slurm, "source");
  out.slurm_state = text_at(slurm, "state");
  out.slurm_answered_at = text_at(slurm, "answeredAt");
  out.slurm_age_seconds = int_at(slurm, "ageSeconds");
  out.slurm_stale = bool_at(slurm, "stale");
  out.slurm_failure = text_at(slurm, "failure");
  const Json& slurmd = part(object, "slurmd");
  if (const Json* running = member(slurmd, "running");
      running != nullptr && running->is_boolean()) {
    out.slurmd_running = running->get<bool>();
  }
  out.slurmd_pid = static_cast<int>(int_at(slurmd, "pid").value_or(0));
  out.slurmd_version = text_at(slurmd, "version");
  out.client = certificate_from(part(object, "clientCertificate"));
  out.serving = certificate_from(part(object, "servingCertificate"));
  const Json& metal3 = part(object, "metal3");
  out.metal3_uuid = text_at(metal3, "uuid");
  out.provider_id = text_at(metal3, "providerID");
  const Json& pods = part(object, "pods");
  out.pods_rejected = count_at(pods, "rejected");
  out.pods_finished = count_at(pods, "finished");
  out.pods_waiting = count_at(pods, "waiting");
  return out;
}

std::string to_text(const DaemonStatus& status) {
  Lines lines;
  lines.add("daemon",
            fmt::format("slurmlet {}, pid {}, since {}", status.version, status.pid, status.since));
  lines.add("API server", status.api_server);
  lines.add("node", status.registered             ? "registered"
                    : status.phase == "bootstrap" ? "not registered: no credential yet"
                                                  : "not registered");
  for (const auto& problem : status.problems) {
    lines.add("problem", fmt::format("{}: {}", problem.what, problem.detail));
  }
  if (!status.lease_renewed_at.empty()) {
    lines.add("lease", fmt::format("{}, renewed {}", status.lease_held ? "held" : "not held",
                                   status.lease_renewed_at));
  }
  if (!status.ready_status.empty()) {
    lines.add("Ready", fmt::format("{} ({}): {}", status.ready_status, status.ready_reason,
                                   status.ready_message));
  }
  lines.add("Slurm", slurm_line(status));
  lines.add("slurmd", slurmd_line(status));
  lines.add("client cert", client_line(status.client));
  lines.add("serving cert", serving_line(status.serving));
  lines.add("metal3 uuid", status.metal3_uuid);
  lines.add("providerID", status.provider_id);
  lines.add("pods", fmt::format("{} rejected, {} removed, {} waiting", status.pods_rejected,
                                status.pods_finished, status.pods_waiting));
  return status.summary + "\n" + lines.out;
}

}  // namespace slurmlet::app
