#pragma once

// Who this node is: its Kubernetes name, its Metal3 identity and the policy for its Node. Decided
// once at start from settings, cloud-init's metadata, saved state and the credential.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "metal3/identity.h"
#include "metal3/saved_state.h"
#include "node/facts.h"
#include "node/policy.h"

namespace slurmlet::daemon {

using metal3::StateUse;

struct NodeIdentity {
  std::optional<node::Metal3Facts> metal3;
  std::optional<metal3::MachineId> metadata;  // for the saved state
  node::NodePolicy policy;
  std::string hostname;                // uname -n
  std::string name_source;             // where the node's name comes from, for people
  std::string system_uuid;             // SMBIOS's, "" = unknown
  std::string boot_id;                 // of this boot of the machine, "" = unknown
  std::string remembered_provider_id;  // that an earlier run saw on the Node
  std::vector<metal3::Note> notes;     // to be logged once
  bool reprovisioned = false;          // the saved state is another Machine's
};

// kInvalid when no valid node name can be found.
Result<NodeIdentity> identify(const config::Settings& settings, StateUse use = StateUse::kOwn);

// The Metal3 uuid and the providerID that this node goes by, configuration first; "" = none.
std::string metal3_uuid_of(const NodeIdentity& identity);
std::string provider_id_of(const NodeIdentity& identity);

// Ours in the Lease. Names the machine too, so that two with one node name can be distinguished.
std::string holder_identity_of(const NodeIdentity& identity);

// kInvalid when the credential is for another node. `credential_node` is NAME of a client
// certificate for system:node:NAME, "" if there is none.
Status check_credential(const NodeIdentity& identity, const std::string& credential_node);

// Saves what a later run needs to re-create the Node of this Machine: the providerID that it has.
Status remember_provider_id(const config::Settings& settings, const NodeIdentity& identity,
                            const std::string& provider_id);

}  // namespace slurmlet::daemon
