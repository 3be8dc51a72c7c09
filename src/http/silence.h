#pragma once

// What the clients of one server know together of connections that no longer carry anything, though
// nobody has closed them (a firewall or a load balancer forgot them). Where a call got no answer in
// time and a later one got one, those that were open before the first are suspect, whoever has
// them: each client leaves them, and what was streamed over them is streamed over new ones. A
// server that answers nobody makes nothing suspect.
//
// Thread-safe.

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace slurmlet::http {

class Silence {
 public:
  // Connections are suspected again no sooner: a server that is sometimes slow must not force all
  // watches to reopen each time.
  static constexpr Duration kPause = std::chrono::minutes{1};

  // Of a call that began then.
  void timed_out(SteadyTime begun) {
    const std::lock_guard lock(mutex_);
    unanswered_ = std::max(begun, unanswered_.value_or(begun));
  }
  void answered(SteadyTime begun) {
    const std::lock_guard lock(mutex_);
    if (!unanswered_ || begun <= *unanswered_ || (before_ && begun - *before_ < kPause)) {
      return;
    }
    before_ = std::exchange(unanswered_, std::nullopt);
    for (const auto& [client, wake] : clients_) {
      wake();
    }
  }
  // Those opened before are suspect; nothing = none is.
  std::optional<SteadyTime> before() const {
    const std::lock_guard lock(mutex_);
    return before_;
  }

  // `wake` is called, in any thread, when before() has changed.
  void join(const void* client, std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    clients_[client] = std::move(wake);
  }
  void leave(const void* client) {
    const std::lock_guard lock(mutex_);
    clients_.erase(client);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<SteadyTime> unanswered_;  // the beginning of the last call that timed out
  std::optional<SteadyTime> before_;
  std::map<const void*, std::function<void()>> clients_;
};

}  // namespace slurmlet::http
