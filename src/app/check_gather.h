#pragma once

// What `slurmlet check` looks at, gathered for its rules. Reads and asks only, nothing is written
// anywhere; each step has a deadline of its own. Blocks: for a subcommand.

#include <optional>
#include <string>
#include <vector>

#include "app/access.h"
#include "app/check_cluster.h"
#include "app/check_identity.h"
#include "app/check_machine.h"
#include "app/node_preview.h"
#include "config/settings.h"

namespace slurmlet::app {

// The credential in use: the node's own, else that of the bootstrap.
struct Credentials {
  CredentialSeen own;
  std::optional<BootstrapSeen> bootstrap;  // where one is configured
  std::optional<ApiAccess> access;         // nothing: none can be used
  bool by_bootstrap = false;
};
Credentials look_at_credentials(const config::Settings& settings, const std::string& node_name,
                                const Clock& clock);

ServingSeen look_at_serving(const config::Settings& settings,
                            const std::optional<DaemonStatus>& daemon);

struct ClusterSeen {
  ServerSeen server;
  // With the node's own credential only.
  std::optional<std::vector<RightSeen>> rights;
  std::optional<Error> rights_problem;
  std::optional<NodeSeen> node;
};
// `limit` for all of it.
ClusterSeen look_at_cluster(const config::Settings& settings, const Credentials& credentials,
                            const NodePreview& preview, bool daemon_runs, Duration limit);

MungeSeen look_at_munge(const config::Settings& settings, const NodeIdentity& identity);

std::vector<PortSeen> look_at_ports(const config::Settings& settings);

}  // namespace slurmlet::app
