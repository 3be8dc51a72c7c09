#pragma once

// The Server's listening socket: bound, or taken over from the service manager; bound again when it
// was lost, or when another program had it (back-off with jitter). Changes are logged, attempts are
// not. Internal to the component; not thread-safe.

#include <sys/socket.h>

#include <cstdint>

#include "base/clock.h"
#include "base/delay.h"
#include "base/unique_fd.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

// The source of a client and its address with the port: "192.0.2.7:40412", "[2001:db8::1]:40412".
Caller name_peer(const sockaddr_storage& address);

struct Listener {
  UniqueFd socket;  // non-blocking
  int port = 0;
};

class Port {
 public:
  // `epoll` tells of the socket with `mark`. The options must outlive it.
  Port(const ServerOptions& options, int epoll, std::uint64_t mark);

  // The first attempt. After an Error other than kInvalid step() tries again.
  Status open();
  // Until when there is nothing to do.
  SteadyTime step(SteadyTime now);
  // The next client, if one waits.
  UniqueFd accept(sockaddr_storage& from, SteadyTime now);
  // A descriptor is free again.
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
