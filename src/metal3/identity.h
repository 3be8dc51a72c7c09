#pragma once

// Who this machine is for Cluster API's Metal3 provider, from the best source there is:
// cloud-init's instance data, else the config drive, else what an earlier run saved.
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
};

// The host was provisioned anew when the uuid differs from the saved one, or when the uuid is the
// same (a BareMetalHost keeps it) but the metadata names another Metal3Machine than the saved
// provider ID. A provider ID that only the saved state has is kept: Cluster API's Metal3 provider
// wrote it on the Node.
Resolution resolve(const Paths& paths, StateUse use = StateUse::kOwn);

}  // namespace slurmlet::metal3
