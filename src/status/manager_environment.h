#pragma once

// What the service manager tells a service in its environment (sd_notify(3),
// sd_watchdog_enabled(3), sd_listen_fds(3), systemd.exec(5) "Credentials"). Read once and removed,
// so that child processes (sinfo) neither speak for the daemon nor believe that they are watched.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace slurmlet::status {

struct ManagerEnvironment {
  std::string notify_socket;                          // NOTIFY_SOCKET; "" = nobody listens
  std::optional<std::chrono::microseconds> watchdog;  // a ping at least this often; nothing = none
  std::string credentials_directory;                  // CREDENTIALS_DIRECTORY; "" = none
  std::vector<int> sockets;  // of the unit's socket unit: descriptors, open until the process ends
};

// The rule by itself: `lookup` answers "" for what is not set, `pid` is ours. WATCHDOG_USEC counts
// only if WATCHDOG_PID is ours or not set, LISTEN_FDS only if LISTEN_PID is ours; what is no
// positive number counts as not set.
ManagerEnvironment read_manager_environment(
    const std::function<std::string(const char* name)>& lookup, int pid);

// The same of this process, whose variables are then gone, and whose children do not inherit the
// sockets. Call before threads start.
ManagerEnvironment take_manager_environment();

}  // namespace slurmlet::status
