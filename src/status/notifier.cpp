#include "status/notifier.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace slurmlet::status {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

// Empty length for what is no address: neither absolute nor abstract, or longer than the kernel's.
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

Message& Message::line(std::string_view text) {
  text_.append(text).push_back('\n');
  return *this;
}

Message& Message::reloading(std::chrono::microseconds monotonic) {
  line("RELOADING=1");
  return line("MONOTONIC_USEC=" + std::to_string(monotonic.count()));
}

Message& Message::status(std::string_view text) {
  std::string clean{text};
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line("STATUS=" + clean);
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

// Addressed anew each time, as sd_notify(3) does: a manager that was executed again listens at the
// same address with another socket.
Status Notifier::send(const Message& message) const {
  if (!socket_ || message.empty()) {
    return {};
  }
  const Address to = socket_address(address_);
  const std::string& text = message.text();
  const ssize_t sent = ::sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&to.name), to.length);
  return sent == static_cast<ssize_t>(text.size())
             ? Status{}
             : Status{Error{Code::kUnavailable,
                            "the service manager at " + address_ +
                                " was not notified: " + std::generic_category().message(errno)}};
}

}  // namespace slurmlet::status
