#include "host/source_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"
#include "host/addresses.h"

namespace slurmlet::host {
namespace {

std::string numeric(const sockaddr_storage& local) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (local.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &local, sizeof address);
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  } else if (local.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &local, sizeof address);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::string source_towards(const addrinfo& target) {
  const UniqueFd fd{::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (!fd || ::connect(fd.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    return {};
  }
  std::string source = numeric(local);
  return is_global_address(source) ? source : std::string{};
}

}  // namespace

std::string route_source(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    if (std::string source = source_towards(*target); !source.empty()) {
      return source;
    }
  }
  return {};
}

}  // namespace slurmlet::host
