#pragma once

// What the running daemon says of itself: the body of GET /status on its health port (127.0.0.1),
// and the same read back by `slurmlet status`, `wait-registered` and `check`. Whoever has a shell
// on the node may read it, so it holds nothing secret and nothing of jobs. Pure functions.
//
// The JSON object. Keys stay; new ones may come. What is not known is null or missing:
//
//   version, pid, since          of the daemon; since: RFC 3339, when the process started
//   node                         name of the Kubernetes Node
//   phase                        "bootstrap" (no credential yet) or "running"
//   summary                      the state line that systemctl status shows (state_line.h)
//   registered                   the Node is on the API server and is ours
//   healthy                      registered, the lease held and the credential accepted
//   problems                     [{what, detail}]: what keeps it from being healthy
//   apiServer                    its URL
//   refusal                      why this machine may not have the Node
//   lease                        {held, renewedAt, error}
//   ready                        {status, reason, message} of the condition Ready as wanted now
//   slurm                        {node, cluster, source, state, answeredAt, ageSeconds, stale,
//                                failure}
//   slurmd                       {running, pid, version}; running: true, false or null
//   clientCertificate            {notAfter, pendingRequest, pendingSince, problem}
//   servingCertificate           {notAfter, selfSigned, pendingRequest, pendingSince, problem}
//   metal3                       {uuid, providerID}
//   pods                         {rejected, finished, waiting}: counters since the start, and now

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "status/report.h"
#include "sync/lease_link.h"

namespace slurmlet::status {

struct DaemonProblem {
  std::string what;  // "credential", "lease", "node"
  std::string detail;
  bool operator==(const DaemonProblem&) const = default;
};

struct CertificateState {
  std::optional<std::string> not_after;  // RFC 3339
  bool self_signed = false;
  std::string pending_request;  // name of the CertificateSigningRequest that waits for approval
  std::optional<std::string> pending_since;
  std::string problem;
};

struct DaemonStatus {
  std::string version, since, node, phase, summary, api_server, refusal;
  int pid = 0;
  bool registered = false;
  bool healthy = false;
  std::vector<DaemonProblem> problems;
  bool lease_held = false;
  std::string lease_renewed_at, lease_error;
  std::string ready_status, ready_reason, ready_message;
  std::string slurm_node, slurm_cluster, slurm_source, slurm_state, slurm_failure;
  std::string slurm_answered_at;
  std::optional<std::int64_t> slurm_age_seconds;
  bool slurm_stale = false;
  std::optional<bool> slurmd_running;
  int slurmd_pid = 0;
  std::string slurmd_version;
  CertificateState client, serving;
  std::string metal3_uuid, provider_id;
  std::uint64_t pods_rejected = 0, pods_finished = 0, pods_waiting = 0;
};

struct StatusInput {
  const Report& report;
  const sync::LeaseStatus& lease;
  Duration lease_duration;
  WallTime started;  // the process
  Now now;
};

DaemonStatus daemon_status(const StatusInput& input);

std::string to_json(const DaemonStatus& status);
// kInvalid for what is no answer of slurmlet; missing keys are unknown.
Result<DaemonStatus> daemon_status_from_json(const std::string& text);

// For people, several lines.
std::string to_text(const DaemonStatus& status);
// Why it is not healthy, in one line; "" if it is.
std::string why_unhealthy(const DaemonStatus& status);

// When this process started, by the first call: to be made early.
WallTime process_start();

}  // namespace slurmlet::status
