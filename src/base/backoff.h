#pragma once

// Exponential back-off with full jitter: delay n is uniform in [initial, min(cap, initial·2ⁿ)].
// Pure but for the injected random source.

#include <functional>

#include "base/clock.h"

namespace slurmlet {

// Uniform in [0, 1).
using Random = std::function<double()>;
Random system_random();

class Backoff {
 public:
  Backoff(Duration initial, Duration cap, Random random);
  Duration next();
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Duration initial_;
  Duration cap_;
  Random random_;
  int failures_ = 0;
};

}  // namespace slurmlet
