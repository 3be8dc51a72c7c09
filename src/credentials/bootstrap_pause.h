#pragma once

// When a credential that the API server rejects is given up for another bootstrap: at once the
// first time, then after pauses that grow from a minute to an hour, so that a server that rejects
// everybody is not asked over and over; and at once when somebody puts another token there. Not
// thread-safe.

#include <filesystem>
#include <optional>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/file_watch.h"

namespace slurmlet::credentials {

class BootstrapPause {
 public:
  // `files`: what a bootstrap needs (bootstrap_files()).
  BootstrapPause(std::vector<std::filesystem::path> files, Random random);

  // A bootstrap has been tried.
  void tried(SteadyTime now);
  // The credential is rejected, now or still: from when on a bootstrap may be tried.
  SteadyTime refused();
  // The credential is accepted; the files are looked at no more.
  void accepted() { watch_.reset(); }
  // Readable when the files may have changed; -1 unless the credential is rejected.
  int fd() const { return watch_ ? watch_->fd() : -1; }

 private:
  std::vector<std::filesystem::path> files_;
  Backoff backoff_;
  SteadyTime until_{};
  std::optional<FileWatch> watch_;  // while the credential is rejected
  bool first_is_late_ = false;      // its first look, which is of no change
};

}  // namespace slurmlet::credentials
