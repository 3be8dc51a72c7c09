#pragma once

// Limits how often callers get something expensive: a TLS handshake, a review by the API server.
// Known addresses, from which a request was authorized, share one limit, and all others another. So
// unauthenticated clients can neither keep this machine or the API server busy nor lock out known
// callers. Bounded memory; not thread-safe.

#include <algorithm>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace slurmlet::podapi {

class CallerBudget {
 public:
  // `limit`: of each of the two.
  explicit CallerBudget(const Rate& limit) : known_(limit), unauthenticated_(limit) {}

  // Returns `now` if granted, else when to try again.
  SteadyTime take(const std::string& host, SteadyTime now) {
    TokenBucket& bucket = knows(host) ? known_ : unauthenticated_;
    const SteadyTime turn = bucket.ready(now);
    bucket.take(now);
    return turn;
  }
  // A request from this address was authorized.
  void know(const std::string& host) {
    if (!knows(host)) {
      hosts_.push_back(host);
    }
    if (hosts_.size() > kMostKnown) {
      hosts_.pop_front();
    }
  }
  bool knows(const std::string& host) const {
    return std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
  }

 private:
  static constexpr std::size_t kMostKnown = 128;

  std::deque<std::string> hosts_;  // known addresses, oldest first
  TokenBucket known_, unauthenticated_;
};

}  // namespace slurmlet::podapi
