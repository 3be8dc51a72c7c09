#pragma once

// The process's signals as a descriptor: blocked in every thread, read by the main one. No
// handlers.

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet::daemon {

class Signals {
 public:
  // Blocks SIGTERM, SIGINT, SIGHUP and SIGPIPE for this thread and those it starts from now on.
  static Result<Signals> open();
  int fd() const { return fd_.get(); }
  // The next pending signal's number, nothing if none.
  std::optional<int> take();

 private:
  explicit Signals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace slurmlet::daemon
