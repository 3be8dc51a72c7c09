#pragma once

// The service manager's end of sd_notify(3): a datagram socket bound to a path, or to an abstract
// name ("@name").

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace slurmlet::fakes {

class ServiceManager {
 public:
  explicit ServiceManager(const std::string& address)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    const bool abstract = address.front() == '@';
    if (abstract) {
      name.sun_path[0] = '\0';
    }
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() +
                                               (abstract ? 0 : 1));
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), length), 0)
        << std::strerror(errno);
  }

  // The next datagram, "" if there is none: what was sent is here when send() has returned.
  std::string take() const {
    std::array<char, 4096> buffer{};
    const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return n < 0 ? "" : std::string{buffer.data(), static_cast<std::size_t>(n)};
  }

 private:
  UniqueFd socket_;
};

}  // namespace slurmlet::fakes
