#pragma once

// So many at once, so many a second after that. Not thread-safe.

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace slurmlet::podapi {

struct Rate {
  double per_second;
  double burst;
};

class TokenBucket {
 public:
  explicit TokenBucket(const Rate& rate) : rate_(rate), left_(rate.burst) {}

  // When there is one to take; `now` if there is one, kNever if there will be none.
  SteadyTime ready(SteadyTime now) {
    if (seen_) {
      const double elapsed = std::chrono::duration<double>(now - *seen_).count();
      left_ = std::min(rate_.burst, left_ + std::max(0.0, elapsed) * rate_.per_second);
    }
    seen_ = now;
    if (left_ >= 1) {
      return now;
    }
    if (rate_.per_second <= 0) {
      return kNever;
    }
    // Rounded up: at that time there is one; hardly, so that who comes just then takes no turn of
    // those who wait for it.
    return now + std::chrono::ceil<std::chrono::microseconds>(
                     std::chrono::duration<double>((1 - left_) / rate_.per_second));
  }

  // Whether there was one; takes it if so.
  bool take(SteadyTime now) {
    const bool there = ready(now) <= now;
    left_ -= there ? 1 : 0;
    return there;
  }

 private:
  Rate rate_;
  double left_;
  std::optional<SteadyTime> seen_;
};

}  // namespace slurmlet::podapi
