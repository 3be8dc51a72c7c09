#pragma once

// What the daemon keeps in stateDir, beside metal3.json (metal3/saved_state.h). Not thread-safe.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/detached_task.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "node/machine_deletion.h"

namespace slurmlet::daemon {

// One daemon for one state directory: two with the same credential, saved identity and Node would
// write over each other.
//
// Holds DIRECTORY/lock (a record lock, fcntl_locking(2)) until the descriptor is closed; the kernel
// frees it when the process ends. As with each such lock, closing any other descriptor of that file
// in this process frees it too, and the process that holds it does not conflict with itself.
// kConflict with the holder's pid when another process has it. An empty descriptor where no lock
// can be made (a read-only file system): the daemon works without.
Result<UniqueFd> lock_state_directory(const std::filesystem::path& directory);

// node-end.json (mode 0600, written atomically; only while the Node is cordoned or gone): what
// sync::NodeSync has to know again after a restart of slurmlet. Good for one boot of the machine
// and one identity: whatever was made anew starts without it.
struct DeletionScope {
  std::string state_dir;
  std::string boot_id;  // "" = unknown: then nothing is kept
  std::string node_name, metal3_uuid, provider_id;
  std::string credential;  // ApiAccess::credential_identity()
  bool operator==(const DeletionScope&) const = default;
};

// kInvalid when the file is none of ours: slurmlet goes on without it. One of another boot or of
// another identity is nothing.
Result<std::optional<node::DeletionRecord>> load_deletion_record(const DeletionScope& scope,
                                                                 SteadyTime now);

// Nothing removes the file.
Status save_deletion_record(const DeletionScope& scope,
                            const std::optional<node::DeletionRecord>& record);

// What is to be remembered in the state directory. It may hang: a write is waited for half a second
// and goes on beside the loop, and of what comes meanwhile the newest is written next, with step().
// Errors are logged. One thread.
class StateSaver {
 public:
  // Writes a file, aside; must own what it uses.
  using Write = std::function<Status()>;

  // `lost`: what a failure means, for the log ("providerID not saved"). Of writes with the same
  // only the newest counts.
  void save(const std::string& lost, Write write);
  void step();
  // At the end of the process: waits that long for what is under way.
  void flush(Duration patience);

 private:
  bool take(Duration patience);

  std::map<std::string, Write> waiting_;  // by `lost`
  std::string under_way_;                 // its `lost`
  DetachedTask<Status> call_;
};

}  // namespace slurmlet::daemon
