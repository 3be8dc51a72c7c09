#pragma once

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "fakes/child_process.h"

namespace slurmlet::fakes {

// A child that somebody traces stays unreaped for us until its tracer has seen its end: as one that
// hangs in the kernel.
class Tracer : public ChildProcess {
 public:
  explicit Tracer(int pid) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char good = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &good, 1);
      while (true) {
        ::pause();
      }
    }
    char good = 'n';
    EXPECT_EQ(::read(ready[0], &good, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    traces_ = good == 'y';
  }
  bool traces() const { return traces_; }

 private:
  bool traces_ = false;
};

}  // namespace slurmlet::fakes
