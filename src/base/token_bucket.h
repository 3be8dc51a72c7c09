#pragma once

// So many at once, so many a second after that. Not thread-safe.

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace slurmlet {

struct Rate {
  double per_second;
  double burst;
};

class TokenBucket {
 public:
  explicit TokenBucket(const Rate& rate) : rate_(rate), left_(rate.burst) {}

  // When there is one to take; `now` if there is one, kNever if there will be none.
  SteadyTime ready(SteadyTime now) const {
    const double left = left_at(now);
    if (left >= 1) {
      return now;
    }
    if (rate_.per_second <= 0) {
      return kNever;
    }
    // Rounded up so that there is one by then, but barely: a newcomer must not take it from those
    // that wait.
    return now + std::chrono::ceil<std::chrono::microseconds>(
                     std::chrono::duration<double>((1 - left) / rate_.per_second));
  }

  // Whether there were `least`; takes one if so.
  bool take(SteadyTime now, double least = 1) {
    left_ = left_at(now);
    seen_ = now;
    const bool there = left_ >= least;
    left_ -= there ? 1 : 0;
    return there;
  }

 private:
  double left_at(SteadyTime now) const {
    const double elapsed =
        seen_ ? std::max(0.0, std::chrono::duration<double>(now - *seen_).count()) : 0;
    return std::min(rate_.burst, left_ + elapsed * rate_.per_second);
  }

  Rate rate_;
  double left_;
  std::optional<SteadyTime> seen_;
};

}  // namespace slurmlet
