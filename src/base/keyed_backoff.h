#pragma once

// When each of many keys may be tried again: a key that failed waits, twice as long each time, and
// holds up no other (client-go's ItemExponentialFailureRateLimiter). Not thread-safe.

#include <algorithm>
#include <map>
#include <string>

#include "base/clock.h"

namespace slurmlet {

class KeyedBackoff {
 public:
  KeyedBackoff(Duration first, Duration longest) : first_(first), longest_(longest) {}

  bool may_try(const std::string& key, SteadyTime now) const { return now >= not_before(key); }
  // SteadyTime{} where it has not failed.
  SteadyTime not_before(const std::string& key) const {
    const auto found = failed_.find(key);
    return found == failed_.end() ? SteadyTime{} : found->second.until;
  }
  bool has_failed(const std::string& key) const { return failed_.contains(key); }
  // `at_least`: no sooner than that.
  void failed(const std::string& key, SteadyTime now, SteadyTime at_least = {}) {
    Entry& entry = failed_[key];
    entry.pause = std::clamp(2 * entry.pause, first_, longest_);
    entry.until = std::max(now + entry.pause, at_least);
  }
  void retry_by(const std::string& key, SteadyTime time) {
    SteadyTime& until = failed_[key].until;
    until = std::min(until, time);
  }
  void forget(const std::string& key) { failed_.erase(key); }
  void forget_all() { failed_.clear(); }
  // Forgets keys no longer needed.
  template <class IsWanted>
  void retain(const IsWanted& is_wanted) {
    std::erase_if(failed_, [&](const auto& entry) { return !is_wanted(entry.first); });
  }

 private:
  struct Entry {
    SteadyTime until{};
    Duration pause{};
  };
  const Duration first_, longest_;
  std::map<std::string, Entry> failed_;
};

}  // namespace slurmlet
