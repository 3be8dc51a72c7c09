#pragma once

// The rules of `slurmlet check` about the API server: is it reached, does it take us, may we do
// what slurmlet does, and what is there of our Node. Facts in, findings out. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/check/check_finding.h"
#include "kube/api.h"
#include "kube/review_api.h"
#include "node/node.h"

namespace slurmlet::cli {

struct ServerSeen {
  std::string url;
  std::string url_place;   // where it is set: the kubeconfig, or "kubernetes.server"
  std::string ca_place;    // likewise
  std::string ca_expired;  // "at 2026-…" where each CA there has; "" = not
  std::string user;        // "" = the server does not say
  std::string version;
  std::optional<Error> problem;  // nothing: it was reached and took us
  Duration took{};               // of the first answer, connecting included
  std::optional<Duration> skew;  // our clock ahead of the server's; nothing without an answer
  bool by_bootstrap = false;     // asked with the bootstrap token
};
Finding server_finding(const ServerSeen& seen);
std::optional<Finding> clock_finding(const ServerSeen& seen);

struct RightsWanted {
  std::string node_name;
  bool endpoint = true;      // the kubelet endpoint asks who its callers are
  bool certificates = true;  // certificates are asked of the cluster
};
// What slurmlet calls, of src/kube/rest_api.cpp, list_watch.cpp, review_api.cpp and
// certificate_api.cpp.
std::vector<kube::OwnRight> needed_rights(const RightsWanted& wanted);

struct RightSeen {
  kube::OwnRight right;
  bool allowed = false;
  std::string reason;  // the server's
};
// `problem`: why asking ended early; those seen before it count.
Findings rights_findings(const std::vector<RightSeen>& seen, const std::optional<Error>& problem,
                         const std::string& node_name);

struct NodeSeen {
  std::string name;
  std::string holder_identity;             // ours in the Lease
  std::optional<node::ObservedNode> node;  // nothing: there is none
  std::optional<kube::Lease> lease;        // likewise
  std::optional<Error> problem;            // why it could not be read
  bool daemon_runs = false;
  std::string gone_with;   // the Machine that the Node went with in this boot
  std::string gone_until;  // when it is registered again, RFC 3339; "" = not in this boot
};
Findings node_findings(const NodeSeen& seen, const node::DesiredNode& wanted, WallTime now);

}  // namespace slurmlet::cli
