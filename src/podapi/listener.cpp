#include "podapi/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file.h"

namespace slurmlet::podapi {
namespace {

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
};

// It is at the same place in both families.
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
  peer.source.host = text_of(AF_INET, &address);
  peer.address = with_port(peer.source.host, port);
  const bool is_loopback = ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  address.s_addr &= htonl(is_loopback ? IN_CLASSA_NET : IN_CLASSC_NET);
  peer.source.network = text_of(AF_INET, &address) + (is_loopback ? "/8" : "/24");
  return peer;
}

Error listen_error(int error_number, const std::string& where, const std::string& flag) {
  if (error_number == EADDRINUSE) {
    return {
        Code::kConflict,
        fmt::format(
            "{} is in use by another program (a kubelet?). Stop it, or choose another port with {}",
            where, flag)};
  }
  return errno_error(error_number, fmt::format("listen on {} ({})", where, flag));
}

// The listening socket, or errno.
std::pair<UniqueFd, int> listen_on(SocketAddress& address) {
  UniqueFd socket{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) {
    return {UniqueFd{}, errno};
  }
  // A restart must not wait for connections of before to leave TIME_WAIT.
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

// The address and port of a TCP socket; nothing for any other.
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

// A duplicate of the one that the service manager holds for this port and address, if it does.
std::pair<UniqueFd, int> take_over(const ServerOptions& options) {
  for (const int inherited : options.inherited) {
    if (!is_for(inherited, options)) {
      continue;
    }
    UniqueFd socket{::fcntl(inherited, F_DUPFD_CLOEXEC, 3)};
    // It is the manager's, but should be as ours would be; listen(2) also revives one that was
    // lost.
    if (!socket || ::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
      return {UniqueFd{}, errno};
    }
    return {std::move(socket), 0};
  }
  return {};
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
  const std::string host = name_peer(bound->storage).source.host;
  return host == name_peer(wanted->storage).source.host ||
         (options.address == "::" && host == "0.0.0.0");  // a machine without IPv6
}

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
  peer.source.host = text_of(AF_INET6, &v6);
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, std::uint8_t{0});
  peer.source.network = text_of(AF_INET6, &v6) + "/64";
  peer.address = with_port(peer.source.host, port);
  return peer;
}

}  // namespace slurmlet::podapi
