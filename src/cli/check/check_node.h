#pragma once

// `slurmlet check`: what the API server has of this node.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "check/finding.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "daemon/node_preview.h"
#include "http/client.h"
#include "kube/api.h"
#include "kube/review_api.h"
#include "node/node.h"

namespace slurmlet::cli {

// What slurmlet calls, of src/kube/rest_api.cpp, list_watch.cpp, review_api.cpp and
// certificate_api.cpp. `endpoint`: the kubelet endpoint reviews its callers' tokens;
// `certificates`: they are requested from the cluster. Pure.
std::vector<kube::OwnRight> needed_rights(const std::string& node_name, bool endpoint,
                                          bool certificates);

struct NodeSeen {
  std::string name;
  std::string holder_identity;             // ours in the Lease
  std::optional<node::ObservedNode> node;  // nothing: there is none
  std::optional<kube::Lease> lease;        // likewise
  std::optional<Error> problem;            // why it could not be read
  bool daemon_runs = false;
  std::string deleted_with;   // the Machine that the Node went with in this boot
  std::string deleted_until;  // when it is registered again, RFC 3339; "" = not in this boot
};
NodeSeen read_node(http::Client& client, const kube::CallOptions& options,
                   const config::Settings& settings, const credentials::ApiAccess& access,
                   const daemon::NodePreview& preview);

// Pure, as lease_findings().
check::Findings node_findings(const NodeSeen& seen, const node::DesiredNode& wanted);
check::Findings lease_findings(const NodeSeen& seen, WallTime now);

}  // namespace slurmlet::cli
