// DaemonStatus for people.

#include <fmt/format.h>

#include "status/daemon_status.h"

namespace slurmlet::status {
namespace {

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
    out += fmt::format("; the last query failed: {}", status.slurm_failure);
  }
  return out;
}

std::string slurmd_line(const DaemonStatus& status) {
  if (!status.slurmd_running) {
    return "";
  }
  return *status.slurmd_running
             ? fmt::format("running, pid {}{}", status.slurmd_pid,
                           status.slurmd_version.empty() ? "" : ", " + status.slurmd_version)
             : "not running";
}

std::string serving_line(const CertificateState& serving) {
  if (!serving.pending_request.empty()) {
    return fmt::format("{} is waiting for approval: kubectl certificate approve {}{}",
                       serving.pending_request, serving.pending_request,
                       serving.self_signed ? " (a self-signed one is used until then)" : "");
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
    return fmt::format("{} is waiting for approval: kubectl certificate approve {}",
                       client.pending_request, client.pending_request);
  }
  if (!client.problem.empty()) {
    return client.problem;
  }
  return client.not_after ? "valid until " + *client.not_after : "";
}

}  // namespace

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

}  // namespace slurmlet::status
