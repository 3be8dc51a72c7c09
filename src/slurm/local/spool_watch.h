#pragma once

// Job steps that come and go, by their entries in slurmd's spool directory. The first slurmd that
// starts here may make the directory, and it may lie on a file system that hangs: it is checked for
// aside (detached_task.h). Not thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/detached_task.h"
#include "base/inotify.h"

namespace slurmlet::slurm {

class SpoolWatch {
 public:
  // `directory`: "" = none. While it is not there it is checked for every `rescan`.
  SpoolWatch(std::shared_ptr<Inotify> inotify, std::string directory, Duration rescan,
             Duration patience);

  void step(Now now);
  void check_soon() { check_at_ = {}; }
  // Whether an event is about the directory: then it may be a sign of slurmd's birth as well.
  bool take(const Inotify::Event& event);
  void note_change() { has_changed_ = true; }

  // Whether the jobs have changed since the last call.
  bool take_change() { return std::exchange(has_changed_, false); }
  bool uses(int watch) const { return watch_ == watch; }
  int wake_fd() const { return opening_.wake_fd(); }

 private:
  std::shared_ptr<Inotify> inotify_;
  std::string directory_;
  Duration rescan_;
  Duration patience_;
  DetachedTask<std::optional<int>> opening_;
  SteadyTime check_at_{};
  std::optional<int> watch_;
  bool has_changed_ = false;
};

}  // namespace slurmlet::slurm
