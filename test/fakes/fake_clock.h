#pragma once

// A clock that stands still until the test moves it. Thread-safe.

#include <mutex>

#include "base/clock.h"

namespace slurmlet::fakes {

class FakeClock final : public Clock {
 public:
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
  // Somebody sets the clock: only the wall clock moves.
  void step_wall(std::chrono::milliseconds by) {
    const std::lock_guard lock(mutex_);
    now_.wall += by;
  }

 private:
  mutable std::mutex mutex_;
  Now now_{SteadyTime{std::chrono::hours{1}}, WallTime{kStart}};
};

}  // namespace slurmlet::fakes
