#pragma once

// A clock that stands still until the test moves it. Thread-safe.

#include <algorithm>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "base/clock.h"

namespace slurmlet::fakes {

class FakeClock final : public Clock {
 public:
  static constexpr int kMostAtOnce = 1000;
  // 2026-11-20T14:00:00Z.
  static constexpr std::chrono::seconds kStart{1795183200};

  Now now() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  // Time passes: both clocks move.
  void advance(Duration by) {
    const std::lock_guard lock(mutex_);
    now_.steady += by;
    now_.wall += std::chrono::duration_cast<WallTime::duration>(by);
  }
  // Goes from wake-up to wake-up of `step` for that long; how many steps it took. Throws, which
  // fails the test, when one that has nothing to do wants to be called again at once for ever.
  int run(Duration time, const std::function<SteadyTime()>& step) {
    const SteadyTime end = now().steady + time;
    int steps = 1, at_once = 0;
    for (SteadyTime next = step(); next <= end; ++steps) {
      at_once = next <= now().steady ? at_once + 1 : 0;
      if (at_once > kMostAtOnce) {
        throw std::logic_error("this loop spins");
      }
      advance(std::max(next - now().steady, Duration::zero()));
      next = step();
    }
    advance(std::max(end - now().steady, Duration::zero()));
    return steps;
  }
  // The clock is set: only the wall clock moves.
  void step_wall(std::chrono::milliseconds by) {
    const std::lock_guard lock(mutex_);
    now_.wall += by;
  }

 private:
  mutable std::mutex mutex_;
  Now now_{SteadyTime{std::chrono::hours{1}}, WallTime{kStart}};
};

}  // namespace slurmlet::fakes
