#include "status/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <system_error>

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

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

// `length` is 0 for an invalid address: neither absolute nor abstract, or too long.
Address socket_address(const std::string& text) {
  Address out;
  out.name.sun_family = AF_UNIX;
  const bool abstract = text.size() > 1 && text.front() == '@';
  if ((!abstract && !text.starts_with('/')) || text.size() >= sizeof out.name.sun_path) {
    return out;
  }
  std::copy(text.begin(), text.end(), std::begin(out.name.sun_path));
  if (abstract) {
    out.name.sun_path[0] = '\0';
  }
  // An abstract name ends with its length, a path with a zero byte.
  out.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (abstract ? 0 : 1));
  return out;
}

}  // namespace

ManagerEnvironment read_manager_environment(const config::EnvLookup& environment, int pid) {
  const auto lookup = [&](const char* name) { return environment(name).value_or(""); };
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
  const ManagerEnvironment out =
      read_manager_environment(config::process_environment(), ::getpid());
  for (const int socket : out.sockets) {
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  }
  for (const char* name : {kNotifySocket, kWatchdogUsec, kWatchdogPid, kCredentialsDirectory,
                           kListenFds, kListenPid, kListenNames}) {
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
  }
  return out;
}

std::string status_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return "STATUS=" + text + "\n";
}

Result<Notifier> Notifier::open(const std::string& address) {
  if (address.empty()) {
    return Notifier{};
  }
  if (socket_address(address).length == 0) {
    return Error{Code::kInvalid,
                 "NOTIFY_SOCKET is \"" + address +
                     "\", which is not a socket address; the service manager is not notified"};
  }
  UniqueFd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) {
    return Error{Code::kInternal,
                 "socket for the service manager: " + std::generic_category().message(errno)};
  }
  return Notifier{std::move(socket), address};
}

// Does not connect, since a re-executed manager has another socket at the same address (as in
// sd_notify(3)).
Status Notifier::send(const std::string& lines) const {
  if (!socket_ || lines.empty()) {
    return {};
  }
  const Address to = socket_address(address_);
  const ssize_t sent = ::sendto(socket_.get(), lines.data(), lines.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&to.name), to.length);
  return sent == static_cast<ssize_t>(lines.size())
             ? Status{}
             : Status{Error{Code::kUnavailable,
                            "the service manager at " + address_ +
                                " was not notified: " + std::generic_category().message(errno)}};
}

}  // namespace slurmlet::status
