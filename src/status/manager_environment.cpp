#include "status/manager_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/text.h"

namespace slurmlet::status {
namespace {

constexpr const char* kNotifySocket = "NOTIFY_SOCKET";
constexpr const char* kWatchdogUsec = "WATCHDOG_USEC";
constexpr const char* kWatchdogPid = "WATCHDOG_PID";
constexpr const char* kCredentialsDirectory = "CREDENTIALS_DIRECTORY";
constexpr const char* kListenFds = "LISTEN_FDS";
constexpr const char* kListenPid = "LISTEN_PID";
constexpr const char* kListenNames = "LISTEN_FDNAMES";
constexpr int kFirstSocket = 3;  // SD_LISTEN_FDS_START
constexpr int kMostSockets = 16;

std::string value_of(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

}  // namespace

ManagerEnvironment read_manager_environment(
    const std::function<std::string(const char* name)>& lookup, int pid) {
  ManagerEnvironment out;
  out.notify_socket = lookup(kNotifySocket);
  out.credentials_directory = lookup(kCredentialsDirectory);
  const auto usec = parse_int<std::int64_t>(lookup(kWatchdogUsec));
  const std::string watched = lookup(kWatchdogPid);
  if (usec && *usec > 0 && (watched.empty() || parse_int<int>(watched) == pid)) {
    out.watchdog = std::chrono::microseconds{*usec};
  }
  const auto sockets = parse_int<int>(lookup(kListenFds));
  if (sockets && parse_int<int>(lookup(kListenPid)) == pid) {
    for (int i = 0; i < *sockets && i < kMostSockets; ++i) {
      out.sockets.push_back(kFirstSocket + i);
    }
  }
  return out;
}

ManagerEnvironment take_manager_environment() {
  const ManagerEnvironment out = read_manager_environment(value_of, ::getpid());
  for (const int socket : out.sockets) {
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  }
  for (const char* name : {kNotifySocket, kWatchdogUsec, kWatchdogPid, kCredentialsDirectory,
                           kListenFds, kListenPid, kListenNames}) {
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  }
  return out;
}

}  // namespace slurmlet::status
