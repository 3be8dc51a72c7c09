#pragma once

// What `slurmlet check` looks at, gathered for its rules. Reads and asks only, nothing is written
// anywhere; each step has a deadline of its own. Blocks: for a subcommand.

#include <optional>
#include <string>
#include <vector>

#include "cli/check/check_cluster.h"
#include "cli/check/check_identity.h"
#include "cli/check/check_machine.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "daemon/node_preview.h"

namespace slurmlet::cli {

// The credential in use: the node's own, else that of the bootstrap.
struct Credentials {
  CredentialSeen own;
  std::optional<BootstrapSeen> bootstrap;        // where one is configured
  std::optional<credentials::ApiAccess> access;  // nothing: none can be used
  bool by_bootstrap = false;
};
Credentials look_at_credentials(const config::Settings& settings, const std::string& node_name,
                                const Clock& clock);

ServingSeen look_at_serving(const config::Settings& settings,
                            const std::optional<status::DaemonStatus>& daemon);

// `url` and where it comes from.
ServerSeen server_of(const credentials::ApiAccess& access,
                     const config::KubernetesSettings& kubernetes);
// The rest but `by_bootstrap`.
void ask_server(http::Client& client, kube::CallOptions options, ServerSeen& out);

struct ClusterSeen {
  ServerSeen server;
  // With the node's own credential only.
  std::optional<std::vector<RightSeen>> rights;
  std::optional<Error> rights_problem;
  std::optional<NodeSeen> node;
};
// `limit` for all of it.
ClusterSeen look_at_cluster(const config::Settings& settings, const Credentials& credentials,
                            const daemon::NodePreview& preview, bool daemon_runs, Duration limit);

// slurmlet-operator's annotation on the Node: "" where it has none, nothing if it cannot be read.
std::optional<std::string> look_at_record(const config::Settings& settings,
                                          const std::string& node_name);

MungeSeen look_at_munge(const daemon::SlurmConfSeen& conf);

std::vector<PortSeen> look_at_ports(const config::Settings& settings);

}  // namespace slurmlet::cli
