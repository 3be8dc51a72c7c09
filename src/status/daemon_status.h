#pragma once

// The daemon's own status: the body of GET /status on its health port (127.0.0.1), and what
// `slurmlet status`, `wait-registered` and `check` read from it. It is the JSON object below, so
// that commands and daemons of different versions work together. Any local user may read it, so it
// has no secrets and nothing about jobs. Pure functions.
//
// The JSON object, to which keys are only added; unknown values are null or missing:
//
//   version, pid, since          of the daemon; since: RFC 3339, when the process started
//   node                         name of the Kubernetes Node
//   phase                        "bootstrap" (no credential yet) or "running"
//   summary                      the state line that systemctl status shows (state_line.h)
//   registered                   the Node is on the API server and is ours
//   healthy                      the Node registered and as desired, the lease held and the
//                                credential accepted
//   problems                     [{what, detail}]: what keeps it from being healthy
//   apiServer                    its URL
//   refusal                      why this machine may not have the Node
//   lease                        {held, renewedAt, error}
//   ready                        {status, reason, message} of the desired condition Ready
//   slurm                        {node, cluster, source, state, answeredAt, ageSeconds, stale,
//                                failure}
//   slurmd                       {running, pid, version}; running: true, false or null
//   clientCertificate            {notAfter, pendingRequest, pendingSince, problem}
//   servingCertificate           {notAfter, selfSigned, pendingRequest, pendingSince, problem}
//   endpoint                     {port, listening}: of the kubelet API; null where it is off, and
//                                in phase "bootstrap"
//   metal3                       {uuid, providerID}
//   pods                         {rejected, finished, waiting}: counters since the start, and now

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "status/report.h"
#include "sync/lease_link.h"

namespace slurmlet::status {

struct EndpointState {
  int port = 0;
  bool listening = false;
};

struct StatusInput {
  const Report& report;
  const sync::LeaseStatus& lease;
  Duration lease_duration;
  WallTime started;  // the process
  Now now;
  std::optional<EndpointState> endpoint = {};
};

// Why the credential is not usable; "" = it is.
std::string credential_problem(const Report& report);

// Why the Node does not show this machine's state: not registered, not written for longer than a
// lease, or changed by the server; "" = it does.
std::string node_problem(const Report& report, Duration lease_duration, SteadyTime now);

// The JSON object, indented.
std::string daemon_status_json(const StatusInput& input);

// The status as read by commands.
struct DaemonStatus {
  std::string json;  // as received
  std::string text;  // for people, several lines
  std::string node, phase, summary;
  int pid = 0;
  bool registered = false;
  bool healthy = false;
  bool lease_held = false;
  std::string problem;                           // one line; "" = healthy
  std::string serving_request, serving_problem;  // of the serving certificate
};

// kInvalid if it is not slurmlet's; missing keys are unknown.
Result<DaemonStatus> read_daemon_status(const std::string& json);

// The start of this process: the time of the first call, so call it early.
WallTime process_start();

}  // namespace slurmlet::status
