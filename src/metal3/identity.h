#pragma once

// This machine's identity for Cluster API's Metal3 provider, from the first available source:
// cloud-init's instance data of this boot, the config drive if cloud-init did not run, or the state
// saved by an earlier run. With metadata of another cloud this is no Metal3 machine.
//
// Called at start-up: may block on a disk for seconds. Only writes to remove an earlier Machine's
// saved state, as owner of the state directory. The caller saves the state (saved_state.h) once the
// Node is registered, with the Node's provider ID.

#include <optional>
#include <string>
#include <vector>

#include "metal3/metadata.h"
#include "metal3/saved_state.h"
#include "node/facts.h"

namespace slurmlet::metal3 {

// To be logged once.
struct Note {
  enum class Kind {
    kProblem,       // must be fixed
    kNoMetadata,    // on this boot
    kReprovisioned  // Resolution::reprovisioned
  };
  Kind kind = Kind::kProblem;
  std::string text;
};

struct Resolution {
  std::optional<node::Metal3Facts> facts;
  std::vector<Note> notes;
  // The saved state was another Machine's and is removed; its credentials are stale too.
  bool reprovisioned = false;
  std::optional<MachineId> metadata = MachineId{};  // for SavedState
};

// The host was reprovisioned if the metadata has another uuid than the saved metadata, or another
// Metal3Machine with the same uuid (which a BareMetalHost keeps). A provider ID that only the saved
// state has is kept, since Cluster API's Metal3 provider wrote it on the Node.
Resolution resolve(const Paths& paths, StateUse use = StateUse::kOwn);

}  // namespace slurmlet::metal3
