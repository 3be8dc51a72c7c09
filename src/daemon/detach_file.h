#pragma once

// RUNTIME_DIRECTORY/detached: there while slurmlet-operator's mark is on our Node (annotation
// slurmlet.io/detach: Detached), so that slurmd does not register a machine again that has left
// Slurm. The packaged slurmlet-detach.path, where an administrator has enabled it, stops slurmd
// then: this daemon may not. Not thread-safe.

#include <optional>
#include <string>

namespace slurmlet::daemon {

class DetachFile {
 public:
  // "" = no directory is known (not run by systemd): no file is kept.
  explicit DetachFile(const std::string& directory);

  // While the Node is unknown the file stays as it is. A removed file is written again.
  void set(std::optional<bool> detached);

 private:
  std::string path_;
  std::string problem_;
};

}  // namespace slurmlet::daemon
