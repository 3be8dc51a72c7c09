#include "daemon/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "base/file.h"

namespace slurmlet::daemon {

Result<Signals> Signals::open() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&set, number);
  }
  sigset_t blocked = set;
  sigaddset(&blocked, SIGPIPE);
  if (pthread_sigmask(SIG_BLOCK, &blocked, nullptr) != 0) {
    return errno_error(errno, "block signals");
  }
  UniqueFd fd{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd) {
    return errno_error(errno, "signalfd");
  }
  return Signals{std::move(fd)};
}

std::optional<int> Signals::take() {
  // SIGHUP comes first; who is to end does not reload before.
  std::optional<int> last;
  for (signalfd_siginfo info{}; ::read(fd_.get(), &info, sizeof info) == sizeof info;) {
    last = static_cast<int>(info.ssi_signo);
    if (*last != SIGHUP) {
      break;
    }
  }
  return last;
}

}  // namespace slurmlet::daemon
