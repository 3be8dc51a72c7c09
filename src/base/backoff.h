#pragma once

// Exponential back-off with full jitter: delay n is uniform in [initial, min(cap, initial·2ⁿ)].
// Pure but for the injected random source.

#include <chrono>
#include <functional>
#include <optional>

#include "base/clock.h"

namespace slurmlet {

// Uniform in [0, 1).
using Random = std::function<double()>;
Random system_random();

// Of what a server asks for with Retry-After.
inline constexpr Duration kLongestAskedPause = std::chrono::minutes{1};

// The pause that a server `asked` for and up to a quarter more, so that those whom it asked do not
// come back together; nothing asked, no pause.
Duration asked_pause(std::optional<Duration> asked, const Random& random);

class Backoff {
 public:
  Backoff(Duration initial, Duration cap, Random random);
  // No less than asked_pause().
  Duration next(std::optional<Duration> asked = {});
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Duration initial_;
  Duration cap_;
  Random random_;
  int failures_ = 0;
};

}  // namespace slurmlet
