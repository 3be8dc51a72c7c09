#pragma once

// One accepted connection with bounds on everything a client controls: how long it may take in all,
// and how much it may send. Every wait ends at once when `stop_fd` becomes readable.
//
// Not thread-safe: one owner.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace slurmlet::podapi {

class Connection {
 public:
  // `socket` is non-blocking; `stop_fd` is only watched.
  Connection(UniqueFd socket, int stop_fd, SteadyTime deadline)
      : socket_(std::move(socket)), stop_fd_(stop_fd), deadline_(deadline) {}

  enum class Outcome { kComplete, kTooLong, kGone };  // kGone: closed, too slow, or being stopped
  struct Head {
    Outcome outcome = Outcome::kGone;
    std::string text;
  };
  // The request up to and with its empty line.
  Head read_head(std::size_t max_bytes);
  // As much of it as the client takes before the deadline, then the end of the stream.
  void send_and_finish(std::string_view answer);

 private:
  bool wait_for(short events);
  UniqueFd socket_;
  int stop_fd_;
  SteadyTime deadline_;
};

}  // namespace slurmlet::podapi
