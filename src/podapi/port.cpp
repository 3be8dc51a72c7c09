#include "podapi/port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::seconds;

// Pause after a lasting error of accept (no free descriptor, a security module). Clients wait in
// the kernel's queue; a closed connection ends the pause.
constexpr seconds kPause{1};

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
};

// The port has the same offset in both families.
int port_of(const SocketAddress& address) {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

std::optional<SocketAddress> parse(const std::string& text, int port) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof *v4;
    return address;
  }
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<std::uint16_t>(port));
    address.size = sizeof *v6;
    return address;
  }
  return std::nullopt;
}

std::string with_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

Caller name_v4(in_addr address, int port) {
  Caller peer;
  peer.host = text_of(AF_INET, &address);
  peer.address = with_port(peer.host, port);
  return peer;
}

Error listen_error(int error_number, const std::string& where, const std::string& flag) {
  if (error_number == EADDRINUSE) {
    return {Code::kConflict,
            fmt::format("{} is in use by another program. Stop it, or choose another port with {}",
                        where, flag)};
  }
  return errno_error(error_number, fmt::format("listen on {} ({})", where, flag));
}

// Returns the listening socket, or errno.
std::pair<UniqueFd, int> listen_on(SocketAddress& address) {
  UniqueFd socket{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) {
    return {UniqueFd{}, errno};
  }
  // After a restart, old connections may be in TIME_WAIT.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6) {
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.generic(), address.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), address.generic(), &address.size) != 0) {
    return {UniqueFd{}, errno};
  }
  return {std::move(socket), 0};
}

// Nothing unless it is a TCP socket.
std::optional<SocketAddress> bound_to(int socket) {
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
      ::getsockname(socket, bound.generic(), &bound.size) != 0 ||
      (bound.storage.ss_family != AF_INET && bound.storage.ss_family != AF_INET6)) {
    return std::nullopt;
  }
  return bound;
}

// Duplicates the service manager's socket for this port and address, if there is one.
std::pair<UniqueFd, int> take_over(const ServerOptions& options) {
  for (const int inherited : options.inherited) {
    if (!is_for(inherited, options)) {
      continue;
    }
    UniqueFd socket{::fcntl(inherited, F_DUPFD_CLOEXEC, 3)};
    // listen(2) also revives a lost socket.
    if (!socket || ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
      return {UniqueFd{}, errno};
    }
    return {std::move(socket), 0};
  }
  return {};
}

// The queue is empty, or the client has disconnected.
bool is_over(int error_number) {
  return error_number == EAGAIN || error_number == EINTR || error_number == ECONNABORTED;
}

// The socket does not listen any more, for example after `ss --kill`.
bool is_lost(int error_number) {
  return error_number == EINVAL || error_number == EBADF || error_number == ENOTSOCK;
}

// Errors as in Server::start().
Result<Listener> open_listener(const ServerOptions& options) {
  if (options.port < 0 || options.port > 65535) {
    return Error{Code::kInvalid,
                 fmt::format("{} {} is not a port (1 to 65535)", options.port_flag, options.port)};
  }
  auto address = parse(options.address, options.port);
  if (!address) {
    return Error{Code::kInvalid,
                 fmt::format("\"{}\" is not an IP address to listen on", options.address)};
  }
  auto [socket, error] = take_over(options);
  if (socket) {
    return Listener{std::move(socket), options.port};
  }
  if (error == 0) {
    std::tie(socket, error) = listen_on(*address);
  }
  if (options.address == "::" && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)) {
    address = parse("0.0.0.0", options.port);
    std::tie(socket, error) = listen_on(*address);
  }
  if (error != 0) {
    return listen_error(error, with_port(options.address, options.port), options.port_flag);
  }
  return Listener{std::move(socket), port_of(*address)};
}

}  // namespace

std::string socket_name(int socket) {
  const auto bound = bound_to(socket);
  return bound ? name_peer(bound->storage).address : "no TCP port";
}

bool is_for(int socket, const ServerOptions& options) {
  const auto bound = bound_to(socket);
  const auto wanted = parse(options.address, options.port);
  if (!bound || !wanted || options.port == 0 || port_of(*bound) != options.port) {
    return false;
  }
  const std::string host = name_peer(bound->storage).host;
  return host == name_peer(wanted->storage).host ||
         (options.address == "::" && host == "0.0.0.0");  // a machine without IPv6
}

Caller name_peer(const sockaddr_storage& address) {
  const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET) {
    return name_v4(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, port);
  }
  in6_addr v6 = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    in_addr v4{};
    std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    return name_v4(v4, port);
  }
  Caller peer;
  peer.host = text_of(AF_INET6, &v6);
  peer.address = with_port(peer.host, port);
  return peer;
}

Port::Port(const ServerOptions& options, int epoll, std::uint64_t mark)
    : options_(options),
      epoll_(epoll),
      mark_(mark),
      backoff_(Delay::kPortRetry, options.random ? options.random : system_random()) {}

Status Port::open() {
  const Status opened = try_open();
  if (!opened && opened.error().code != Code::kInvalid) {
    next_try_ = SteadyTime{};  // with the next step()
  }
  return opened;
}

Status Port::try_open() {
  auto listener = open_listener(options_);
  if (!listener) {
    ++failures_;
    return listener.error();
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = mark_;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener->socket.get(), &event) != 0) {
    return errno_error(errno, "epoll_ctl");
  }
  listener_ = std::move(*listener);
  paused_until_ = next_try_ = kNever;
  backoff_.reset();
  return {};
}

SteadyTime Port::step(SteadyTime now) {
  if (paused_until_ <= now) {
    paused_until_ = kNever;
    watch(EPOLLIN);
  }
  if (next_try_ <= now) {
    if (try_open()) {
      log::info(fmt::format("{} {}: now listening", options_.port_flag, listener_.port));
    } else {
      next_try_ = now + backoff_.next();
    }
  }
  return std::min(paused_until_, next_try_);
}

UniqueFd Port::accept(sockaddr_storage& from, SteadyTime now) {
  if (!is_open()) {
    return {};
  }
  socklen_t size = sizeof from;
  UniqueFd socket{::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&from), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (socket || is_over(errno)) {
    return socket;
  }
  if (is_lost(errno)) {
    lose(errno, now);
  } else {
    paused_until_ = now + kPause;
    watch(0);
  }
  return {};
}

void Port::end_pause() {
  if (paused_until_ != kNever) {
    paused_until_ = SteadyTime{};  // with the next step()
  }
}

void Port::watch(std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_.socket.get(), &event);
}

void Port::lose(int error_number, SteadyTime now) {
  log::warning(
      errno_error(error_number, fmt::format("{} {}: the socket was lost and is being reopened",
                                            options_.port_flag, listener_.port))
          .message);
  // Closing is not enough, since the service manager may hold the same socket.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.socket.get(), nullptr);
  listener_ = {};
  paused_until_ = kNever;
  next_try_ = now + backoff_.next();
}

}  // namespace slurmlet::podapi
