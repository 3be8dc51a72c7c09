#pragma once

// The process's signals as a descriptor: blocked in every thread, read by the main one. No
// handlers.

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet {

class Signals {
 public:
  // Blocks SIGTERM, SIGINT, SIGHUP and SIGPIPE for this thread and those it starts from now on.
  static Result<Signals> open();
  int fd() const { return fd_.get(); }
  // SIGTERM or SIGINT where one is pending. A SIGHUP is logged and changes nothing: a logrotate
  // that sends it must not stop the Lease.
  std::optional<int> take_stop();

 private:
  explicit Signals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace slurmlet
