#pragma once

// Notices that files were replaced: written, renamed over, or reached through a symbolic link (of
// the file or of a directory on the way to it) that now points elsewhere, as cert-manager,
// Kubernetes' projected volumes and `ln -sfn` do. Event-driven (inotify(7)): the entries of every
// directory that the way to a file leads through a link or ends in, the moves of the others on the
// way. fd() becomes readable when something may have happened; changed() then compares what the
// paths lead to (device, inode, size, mtime) and adds what was written to. Call changed() now and
// then anyway (file systems of other hosts send no events). A file that does not exist is waited
// for, and so is its directory. Not thread-safe.
//
// All of that may hang, so it is done aside (detached_task.h) and waited for a moment. What comes
// later makes fd() readable, and the next changed() gives it.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/detached_task.h"

namespace slurmlet {

class FileWatch {
 public:
  using Files = std::vector<std::filesystem::path>;

  // What is there now counts as seen, unless seeing it takes longer than file_patience, as long as
  // this may block.
  explicit FileWatch(Files files);

  // Descriptor to wait on; -1 when the kernel gave none, or no thread was to be had.
  int fd() const {
    return reading_.busy() ? reading_.wake_fd() : problem_.empty() ? inotify_fd_ : -1;
  }

  // The files whose content may be another since the last call. Empties fd(), unless that hangs:
  // blocks no longer than file_patience.
  Files changed();
  // "/shared/ca.pem does not answer"; "" where all did at the last call.
  const std::string& problem() const { return problem_; }

 private:
  class Ways;  // the watches, and what was seen

  std::shared_ptr<Ways> ways_;  // the reading's while one is under way
  int inotify_fd_ = -1;
  std::string problem_;  // of the last reading
  DetachedTask<Result<Files>> reading_;
};

}  // namespace slurmlet
