#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace slurmlet::fakes {

// The outcome of a child process that `become` has set up (another user, mounts of its own): 0 when
// `test` returned true there, 1 when not, kNotSetUp when `become` did not, -1 when it was killed.
inline constexpr int kNotSetUp = 2;

inline int in_child(const std::function<bool()>& become, const std::function<bool()>& test) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(!become() ? kNotSetUp : test() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace slurmlet::fakes
