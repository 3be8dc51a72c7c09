#pragma once

// STATE_DIR/node-end.json (mode 0600, written atomically; only while the Node is cordoned or gone):
// what sync::NodeSync has to know again after a restart of slurmlet. Good for one boot of the
// machine and one identity: whatever was made anew starts without it. Not thread-safe.

#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/node_identity.h"
#include "node/machine_end.h"

namespace slurmlet::daemon {

struct EndScope {
  std::string state_dir;
  std::string boot_id;  // "" = unknown: then nothing is kept
  std::string node_name, metal3_uuid, provider_id;
  std::string credential;  // ApiAccess::credential_identity()
  bool operator==(const EndScope&) const = default;
};

// kInvalid when the file is none of ours: slurmlet goes on without it. One of another boot or of
// another identity is nothing.
Result<std::optional<node::NodeEnd>> load_node_end(const EndScope& scope, SteadyTime now);

// Nothing removes the file.
Status save_node_end(const EndScope& scope, const std::optional<node::NodeEnd>& end);

}  // namespace slurmlet::daemon
