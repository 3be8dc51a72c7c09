#include "base/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "base/file.h"
#include "base/log.h"

namespace slurmlet {

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

std::optional<int> Signals::take_stop() {
  for (signalfd_siginfo info{}; ::read(fd_.get(), &info, sizeof info) == sizeof info;) {
    if (info.ssi_signo != SIGHUP) {
      return static_cast<int>(info.ssi_signo);
    }
    log::warning(
        "SIGHUP is ignored: the configuration is read at the start only; restart this "
        "program to change it (systemctl restart)");
  }
  return std::nullopt;
}

}  // namespace slurmlet
