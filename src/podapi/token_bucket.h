#pragma once

// A token bucket: so many reviews at once, so many a second after that. Not thread-safe.

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace slurmlet::podapi {

class ReviewBudget {
 public:
  ReviewBudget(double per_second, double burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  // Whether one more is within the budget; takes it if so.
  bool take(SteadyTime now) {
    if (seen_) {
      const double elapsed = std::chrono::duration<double>(now - *seen_).count();
      left_ = std::min(burst_, left_ + std::max(0.0, elapsed) * per_second_);
    }
    seen_ = now;
    if (left_ < 1) {
      return false;
    }
    left_ -= 1;
    return true;
  }

 private:
  double per_second_;
  double burst_;
  double left_;
  std::optional<SteadyTime> seen_;
};

}  // namespace slurmlet::podapi
