#pragma once

// An eventfd: lets one thread wake another that polls fd(). Thread-safe.

#include <sys/eventfd.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace slurmlet {

class Wakeup {
 public:
  Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void notify() const {
    const std::uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof one);
  }
  void clear() const {
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof count);
  }

 private:
  UniqueFd fd_;
};

}  // namespace slurmlet
