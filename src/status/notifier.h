#pragma once

// Tells the service manager how this service is: the datagrams of sd_notify(3), whose form is
// stable and meant to be spoken without libsystemd. Where no manager listens, nothing is sent.
// Thread-safe: one datagram a message, no state but the descriptor. Never blocks.

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet::status {

// One datagram, put together line by line.
class Message {
 public:
  // Configuration is read and the service runs; also ends what reloading() began.
  Message& ready() { return line("READY=1"); }
  // The configuration is about to be read again. `monotonic`: CLOCK_MONOTONIC now.
  Message& reloading(std::chrono::microseconds monotonic);
  Message& stopping() { return line("STOPPING=1"); }
  // The service is alive.
  Message& watchdog() { return line("WATCHDOG=1"); }
  // The line that `systemctl status` shows; control characters in it become spaces.
  Message& status(std::string_view text);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  Message& line(std::string_view text);
  std::string text_;
};

class Notifier {
 public:
  // Sends to nobody.
  Notifier() = default;
  // To `address` as in NOTIFY_SOCKET: an absolute path, or "@name" of the abstract namespace; ""
  // gives one that sends to nobody. kInvalid for any other address.
  static Result<Notifier> open(const std::string& address);

  bool is_heard() const { return static_cast<bool>(socket_); }
  // An empty message is not sent. kUnavailable when the manager does not take it now; there is
  // nothing to be done about that but to send the next one.
  Status send(const Message& message) const;

 private:
  Notifier(UniqueFd socket, std::string address)
      : socket_(std::move(socket)), address_(std::move(address)) {}

  UniqueFd socket_;
  std::string address_;
};

}  // namespace slurmlet::status
