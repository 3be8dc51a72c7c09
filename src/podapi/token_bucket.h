#pragma once

// So many at once, so many a second after that. Not thread-safe.

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace slurmlet::podapi {

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  // When there is one to take; `now` if there is one, kNever if there will be none.
  SteadyTime ready(SteadyTime now) {
    if (seen_) {
      const double elapsed = std::chrono::duration<double>(now - *seen_).count();
      left_ = std::min(burst_, left_ + std::max(0.0, elapsed) * per_second_);
    }
    seen_ = now;
    if (left_ >= 1) {
      return now;
    }
    if (per_second_ <= 0) {
      return kNever;
    }
    // Rounded up: at that time there is one.
    return now + std::chrono::ceil<std::chrono::milliseconds>(
                     std::chrono::duration<double>((1 - left_) / per_second_));
  }

  // Whether there was one; takes it if so.
  bool take(SteadyTime now) {
    const bool there = ready(now) <= now;
    left_ -= there ? 1 : 0;
    return there;
  }

 private:
  double per_second_;
  double burst_;
  double left_;
  std::optional<SteadyTime> seen_;
};

}  // namespace slurmlet::podapi
