#pragma once

// Time as the loops see it: one reading of both clocks, handed in. Deadlines and wake-ups are
// steady (they survive clock steps); what is written to the API is wall time.

#include <chrono>

namespace slurmlet {

using SteadyTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

struct Now {
  SteadyTime steady;
  WallTime wall;
};

// Injected wherever a loop needs the time. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Now now() const override {
    return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
  }
};

// A wake-up that never comes by time.
inline constexpr SteadyTime kNever = SteadyTime::max();

// The next multiple of `period` on the wall clock, as steady time. What a loop checks now and
// then shares its wake-ups that way, and those of all nodes of a parallel job fall together.
inline SteadyTime next_aligned(Now now, Duration period) {
  const Duration wall = std::chrono::duration_cast<Duration>(now.wall.time_since_epoch());
  const Duration into = (wall % period + period) % period;
  return now.steady + (period - into);
}

}  // namespace slurmlet
