#pragma once

// What the running daemon says of itself: the body of GET /status on its health port (127.0.0.1),
// and what `slurmlet status`, `wait-registered` and `check` take from it. The one form of it is the
// JSON object below: a command and a daemon of two versions understand each other. Whoever has a
// shell on the node may read it, so it holds nothing secret and nothing of jobs. Pure functions.
//
// The JSON object. Keys stay; new ones may come. What is not known is null or missing:
//
//   version, pid, since          of the daemon; since: RFC 3339, when the process started
//   node                         name of the Kubernetes Node
//   phase                        "bootstrap" (no credential yet) or "running"
//   summary                      the state line that systemctl status shows (state_line.h)
//   registered                   the Node is on the API server and is ours
//   healthy                      the Node registered and as wanted, the lease held and the
//   credential
//                                accepted
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

// Why this node has no usable credential; "" = it has one.
std::string credential_problem(const Report& report);

// Why the Node does not show what this machine is: not registered, not written for longer than a
// lease lasts, or kept otherwise than it is written; "" = it does.
std::string node_problem(const Report& report, Duration lease_duration, SteadyTime now);

// The object, indented.
std::string daemon_status_json(const StatusInput& input);

// What commands act on.
struct DaemonStatus {
  std::string json;  // as it came
  std::string text;  // the same for people, several lines
  std::string node, phase, summary;
  int pid = 0;
  bool registered = false;
  bool healthy = false;
  bool lease_held = false;
  std::string problem;                           // why it is not healthy, in one line; "" if it is
  std::string serving_request, serving_problem;  // of the serving certificate
};

// kInvalid for what is no answer of slurmlet; missing keys are unknown.
Result<DaemonStatus> read_daemon_status(const std::string& json);

// When this process started, by the first call: to be made early.
WallTime process_start();

}  // namespace slurmlet::status
