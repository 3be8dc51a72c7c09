#pragma once

// The Server's listening socket: bound, or inherited from the service manager; retried with
// back-off while another program has the port, and after it was lost. Logs changes, not attempts.
// Internal to the component; not thread-safe.

#include <sys/socket.h>

#include <cstdint>

#include "base/clock.h"
#include "base/delay.h"
#include "base/unique_fd.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

// The client's host, and its address with port: "192.0.2.7:40412", "[2001:db8::1]:40412".
Caller name_peer(const sockaddr_storage& address);

struct Listener {
  UniqueFd socket;  // non-blocking
  int port = 0;
};

class Port {
 public:
  // `epoll` reports the socket with `mark`. The options must outlive it.
  Port(const ServerOptions& options, int epoll, std::uint64_t mark);

  // First attempt. After an Error other than kInvalid, step() tries again.
  Status open();
  SteadyTime step(SteadyTime now);
  // Returns the next waiting client, if any.
  UniqueFd accept(sockaddr_storage& from, SteadyTime now);
  // Ends a pause early, since a descriptor is free again.
  void end_pause();

  bool is_open() const { return static_cast<bool>(listener_.socket); }
  int number() const { return is_open() ? listener_.port : options_.port; }
  std::uint64_t failures() const { return failures_; }

 private:
  Status try_open();
  void watch(std::uint32_t events);
  void lose(int error_number, SteadyTime now);

  const ServerOptions& options_;
  int epoll_;
  std::uint64_t mark_;
  Listener listener_;
  Backoff backoff_;
  SteadyTime next_try_ = kNever;
  SteadyTime paused_until_ = kNever;  // kNever: not paused
  std::uint64_t failures_ = 0;
};

}  // namespace slurmlet::podapi
