#pragma once

// STATE_DIR/metal3.json (mode 0600, written atomically): what slurmlet last knew about its place in
// Metal3. Two uses: the provider ID of a Node cannot be changed once set, so a Node that somebody
// deleted must come back with the very one it had; and a boot without metadata must not lose the
// Machine. Not thread-safe against itself: one writer.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace slurmlet::metal3 {

// A Machine as its metadata has it.
struct MachineId {
  std::string uuid;         // "" = there was no metadata
  std::string provider_id;  // "" = it had none
  bool operator==(const MachineId&) const = default;
};

struct SavedState {
  std::string uuid;
  std::string provider_id;  // as observed on the Node, "" if it has none yet
  std::string node_name;    // under which the Node was registered
  // The metadata of then: uuid and provider_id may be from settings, which say nothing of another
  // Machine. Nothing in a file of 0.1.0.
  std::optional<MachineId> metadata = {};
  bool operator==(const SavedState&) const = default;
};

// The daemon owns its state directory; a subcommand beside it only looks, and changes nothing.
enum class StateUse { kOwn, kLook };

// Nothing if there is no file. kInvalid when the file is broken: its owner sets it aside as
// metal3.json.broken, so that the next save does not destroy it, and the message says so.
Result<std::optional<SavedState>> load_state(const std::filesystem::path& state_dir,
                                             StateUse use = StateUse::kOwn);

Status save_state(const std::filesystem::path& state_dir, const SavedState& state);

// No error if there is no file.
Status discard_state(const std::filesystem::path& state_dir);

}  // namespace slurmlet::metal3
