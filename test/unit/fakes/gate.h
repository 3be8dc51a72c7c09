#pragma once

#include <condition_variable>
#include <mutex>

#include "base/side_call.h"

namespace slurmlet::fakes {

// A file system that hangs while it is shut: work that is done aside passes it.
class Gate {
 public:
  void pass() {
    touches_file("/shared/file");
    std::unique_lock lock{mutex_};
    opened_.wait(lock, [this] { return open_; });
  }
  void set(bool open) {
    const std::lock_guard lock{mutex_};
    open_ = open;
    opened_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = true;
};

}  // namespace slurmlet::fakes
