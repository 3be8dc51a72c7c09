#pragma once

// The service manager: what it tells this service, and how it hears of it, in the datagrams of
// sd_notify(3), whose form is stable and meant to be spoken without libsystemd.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "config/sources.h"

namespace slurmlet::status {

// What it tells a service in its environment (sd_watchdog_enabled(3), sd_listen_fds(3),
// systemd.exec(5) "Credentials"). Read once and removed, so that child processes (scontrol) neither
// speak for the daemon nor believe that they are watched.
struct ManagerEnvironment {
  std::string notify_socket;                          // NOTIFY_SOCKET; "" = nobody listens
  std::optional<std::chrono::microseconds> watchdog;  // a ping at least this often; nothing = none
  std::string credentials_directory;                  // CREDENTIALS_DIRECTORY; "" = none
  std::vector<int> sockets;  // of the unit's socket unit: descriptors, open until the process ends
};

// The rule by itself, `pid` is ours. WATCHDOG_USEC counts only if WATCHDOG_PID is ours or not set,
// LISTEN_FDS only if LISTEN_PID is ours; what is no positive number counts as not set.
ManagerEnvironment read_manager_environment(const config::EnvLookup& environment, int pid);

// The same of this process, whose variables are then gone, and whose children do not inherit the
// sockets. Call before threads start.
ManagerEnvironment take_manager_environment();

// A line of a datagram.
inline constexpr const char* kReadyLine = "READY=1\n";
inline constexpr const char* kStoppingLine = "STOPPING=1\n";
inline constexpr const char* kWatchdogLine = "WATCHDOG=1\n";  // the service is alive
// The one that `systemctl status` shows; control characters in it become spaces.
std::string status_line(std::string text);

// Where no manager listens, nothing is sent. Thread-safe: no state but the descriptor. Never
// blocks.
class Notifier {
 public:
  // Sends to nobody.
  Notifier() = default;
  // To `address` as in NOTIFY_SOCKET: an absolute path, or "@name" of the abstract namespace; ""
  // gives one that sends to nobody. kInvalid for any other address.
  static Result<Notifier> open(const std::string& address);

  bool is_heard() const { return static_cast<bool>(socket_); }
  // One datagram of such lines; an empty one is not sent. kUnavailable when the manager does not
  // take it now; there is nothing to be done about that but to send the next one.
  Status send(const std::string& lines) const;

 private:
  Notifier(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;
};

}  // namespace slurmlet::status
