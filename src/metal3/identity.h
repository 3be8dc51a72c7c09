#pragma once

// Who this machine is for Cluster API's Metal3 provider, from the best source there is:
// what cloud-init used in this boot, where it did not run the config drive, without either what an
// earlier run saved. Metadata of another cloud ends the search: this is no Metal3 machine then.
//
// Once at start-up: may read a disk and block for some seconds. Writes nothing, except that the
// owner of the state directory removes the saved state of an earlier Machine. The caller saves the
// state (saved_state.h) once the Node is registered, with the provider ID that the Node then has.

#include <optional>
#include <string>
#include <vector>

#include "metal3/metadata.h"
#include "metal3/saved_state.h"
#include "node/facts.h"

namespace slurmlet::metal3 {

// For people, to be logged once.
struct Note {
  enum class Kind {
    kProblem,       // something to be mended
    kNoMetadata,    // on this boot
    kReprovisioned  // Resolution::reprovisioned
  };
  Kind kind = Kind::kProblem;
  std::string text;
};

struct Resolution {
  std::optional<node::Metal3Facts> facts;
  std::vector<Note> notes;
  // The saved state was of another Machine and has been removed: credentials of then are stale too.
  bool reprovisioned = false;
  std::optional<MachineId> metadata = MachineId{};  // for SavedState
};

// The host was provisioned anew when the metadata has another uuid than the metadata of then, or
// the same (a BareMetalHost keeps it) but another Metal3Machine. A provider ID that only the saved
// state has is kept: Cluster API's Metal3 provider wrote it on the Node.
Resolution resolve(const Paths& paths, StateUse use = StateUse::kOwn);

}  // namespace slurmlet::metal3
