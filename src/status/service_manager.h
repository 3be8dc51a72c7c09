#pragma once

// The protocol of the service manager: its environment variables, and datagrams of sd_notify(3),
// whose format is stable, so libsystemd is not needed.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "config/sources.h"

namespace slurmlet::status {

// Environment variables of a service (sd_watchdog_enabled(3), sd_listen_fds(3), systemd.exec(5)
// "Credentials"). Read once and removed, so that child processes (scontrol) do not use them.
struct ManagerEnvironment {
  std::string notify_socket;                          // NOTIFY_SOCKET; "" = none
  std::optional<std::chrono::microseconds> watchdog;  // longest time between pings; nothing = off
  std::string credentials_directory;                  // CREDENTIALS_DIRECTORY; "" = none
  std::vector<int> sockets;  // descriptors of the socket unit, never closed
};

// Pure; `pid` is ours. WATCHDOG_USEC requires that WATCHDOG_PID is ours or not set, LISTEN_FDS that
// LISTEN_PID is ours; values that are not positive numbers count as not set.
ManagerEnvironment read_manager_environment(const config::EnvLookup& environment, int pid);

// Reads and removes this process's variables, and keeps the sockets from its children. Call it
// before threads start.
ManagerEnvironment take_manager_environment();

// Lines of a datagram.
inline constexpr const char* kReadyLine = "READY=1\n";
inline constexpr const char* kStoppingLine = "STOPPING=1\n";
inline constexpr const char* kWatchdogLine = "WATCHDOG=1\n";
// The line that `systemctl status` shows, with control characters replaced by spaces.
std::string status_line(std::string text);

// Sends to the service manager, if there is one. Thread-safe; never blocks.
class Notifier {
 public:
  // Sends nothing.
  Notifier() = default;
  // `address` as in NOTIFY_SOCKET: an absolute path, "@name" in the abstract namespace, or "" to
  // send nothing. kInvalid for any other.
  static Result<Notifier> open(const std::string& address);

  bool is_heard() const { return static_cast<bool>(socket_); }
  // Sends one datagram, unless it is empty. kUnavailable if the manager does not accept it now; the
  // next one may succeed.
  Status send(const std::string& lines) const;

 private:
  Notifier(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;
};

}  // namespace slurmlet::status
