#include "podapi/handshake_budget.h"

#include <algorithm>

namespace slurmlet::podapi {

HandshakeBudget::HandshakeBudget(const HandshakeLimits& limits)
    : limits_(limits), unknown_(limits.unknown_per_second, limits.unknown_burst) {}

SteadyTime HandshakeBudget::take(const std::string& host, SteadyTime now) {
  Address& from = address(host, now);
  SteadyTime turn = from.bucket.ready(now);
  if (!from.is_known) {
    turn = std::max(turn, unknown_.ready(now));
  }
  if (turn <= now) {
    from.bucket.take(now);
    if (!from.is_known) {
      unknown_.take(now);
    }
  }
  return turn;
}

void HandshakeBudget::know(const std::string& host, SteadyTime now) {
  Address& from = address(host, now);
  if (from.is_known) {
    return;
  }
  from.is_known = true;
  // Half of the places stay free for the others.
  if (++known_ > limits_.max_addresses / 2) {
    seen_longest_ago(true)->second.is_known = false;
    --known_;
  }
}

HandshakeBudget::Address& HandshakeBudget::address(const std::string& host, SteadyTime now) {
  const auto found = addresses_.find(host);
  if (found != addresses_.end()) {
    found->second.seen = now;
    return found->second;
  }
  if (addresses_.size() >= limits_.max_addresses) {
    addresses_.erase(seen_longest_ago(false));
  }
  return addresses_
      .emplace(host, Address{TokenBucket{limits_.per_second, limits_.burst}, now, false})
      .first->second;
}

// There is one: see know().
std::map<std::string, HandshakeBudget::Address>::iterator HandshakeBudget::seen_longest_ago(
    bool known) {
  auto oldest = addresses_.end();
  for (auto it = addresses_.begin(); it != addresses_.end(); ++it) {
    if (it->second.is_known == known &&
        (oldest == addresses_.end() || it->second.seen < oldest->second.seen)) {
      oldest = it;
    }
  }
  return oldest;
}

}  // namespace slurmlet::podapi
