#pragma once

// How often callers get something that costs: a TLS handshake, a review by the API server. Two
// limits: one for the addresses from which a request was let through, and one for all others
// together. So strangers, however many, keep neither this machine nor the API server busy, nor
// known callers out. Bounded memory; not thread-safe.

#include <algorithm>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace slurmlet::podapi {

class CallerBudget {
 public:
  // Each of the two.
  explicit CallerBudget(const Rate& limit) : known_(limit), unauthenticated_(limit) {}

  // `now`: this address gets it, and is counted. Else when to ask again.
  SteadyTime take(const std::string& host, SteadyTime now) {
    TokenBucket& bucket = knows(host) ? known_ : unauthenticated_;
    const SteadyTime turn = bucket.ready(now);
    bucket.take(now);
    return turn;
  }
  // A request from this address was let through.
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

  std::deque<std::string> hosts_;  // that are known, the oldest first
  TokenBucket known_, unauthenticated_;
};

}  // namespace slurmlet::podapi
