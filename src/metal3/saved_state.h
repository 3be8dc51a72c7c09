#pragma once

// STATE_DIR/metal3.json (mode 0600, written atomically): slurmlet's last identity in Metal3. A
// Node's provider ID is immutable, so a deleted Node must come back with the same one, and a boot
// without metadata must keep the Machine. One writer.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace slurmlet::metal3 {

// A Machine's identity in its metadata.
struct MachineId {
  std::string uuid;         // "" = no metadata
  std::string provider_id;  // "" = not in the metadata
  bool operator==(const MachineId&) const = default;
};

struct SavedState {
  std::string uuid;
  std::string provider_id;  // as observed on the Node; "" = none yet
  std::string node_name;    // as registered
  // The metadata at that time, since uuid and provider_id may be from settings. Missing in files of
  // 0.1.0.
  std::optional<MachineId> metadata = {};
  bool operator==(const SavedState&) const = default;
};

// Only the daemon owns its state directory; subcommands must not change it.
enum class StateUse { kOwn, kReadOnly };

// Nothing if there is no file. kInvalid if the file is invalid: its owner renames it to
// metal3.json.broken, so that the next save does not overwrite it, and the message says so.
Result<std::optional<SavedState>> load_state(const std::filesystem::path& state_dir,
                                             StateUse use = StateUse::kOwn);

Status save_state(const std::filesystem::path& state_dir, const SavedState& state);

// No error if there is no file.
Status discard_state(const std::filesystem::path& state_dir);

}  // namespace slurmlet::metal3
