#pragma once

// Exponential back-off, spread from the first delay on: both bounds of the table of delays
// (base/delay.h) double until the upper one is at the cap; the lower one is never more than half of
// it. Pure but for the injected random source.

#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/delay.h"

namespace slurmlet {

Random system_random();

// Of what a server asks for with Retry-After.
inline constexpr Duration kLongestAskedPause = std::chrono::minutes{1};

// The pause that a server `asked` for and up to a quarter more, so that those whom it asked do not
// come back together; nothing asked, no pause.
Duration asked_pause(std::optional<Duration> asked, const Random& random);

class Backoff {
 public:
  Backoff(Delay cause, Random random);
  // With bounds of its own where a setting gives them.
  Backoff(Duration from, Duration to, Duration cap, Random random);
  // No less than asked_pause().
  Duration next(std::optional<Duration> asked = {});
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Duration from_;
  Duration to_;
  Duration cap_;
  Random random_;
  int failures_ = 0;
};

}  // namespace slurmlet
