#pragma once

// A child process of the test, killed and reaped with the object at the latest. How it is started
// is said by the class that inherits this.

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace slurmlet::fakes {

class ChildProcess {
 public:
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 protected:
  ChildProcess() = default;
  ~ChildProcess() { kill(); }

  pid_t pid_ = -1;
};

// sleep(1), under the name of its file: waits for nothing but its end.
class SleepingChild : public ChildProcess {
 public:
  explicit SleepingChild(std::string program = "/bin/sleep") {
    std::string argument = "1000";
    char* arguments[] = {program.data(), argument.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
};

}  // namespace slurmlet::fakes
