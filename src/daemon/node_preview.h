#pragma once

// What this machine shows now and the Node that follows from it, gathered once and without any API
// server: for subcommands beside the daemon. Writes nothing. Waits for slurmctld's answer, at most
// the command timeout.

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "daemon/node_identity.h"
#include "node/facts.h"
#include "node/node.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::daemon {

struct PreviewOptions {
  Duration limit = std::chrono::hours{1};  // for slurmctld's answer, if the settings give it more
  // Our address towards the API server: the first of the Node's, as the daemon has it; "" = any.
  std::string route;
  // slurmlet-operator's annotation on the Node of this name, as ControllerPoll::set_record() takes
  // it; called unless slurm.source is scontrol.
  std::function<std::optional<std::string>(const std::string& node_name)> record = {};
};

struct SlurmConfSeen {
  std::string path;     // "" = none is set, nor in the standard locations
  std::string problem;  // why it was not read
};

struct NodePreview {
  NodeIdentity identity;
  node::HostFacts facts;
  SlurmConfSeen slurm_conf;
  node::DesiredNode desired;
  slurm::PollCounters slurmctld;
  Now at;
};

// kInvalid when no valid node name can be found.
Result<NodePreview> preview_node(const config::Settings& settings, const PreviewOptions& options);

}  // namespace slurmlet::daemon
