#include "base/backoff.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

namespace slurmlet {

Random system_random() {
  auto engine = std::make_shared<std::minstd_rand>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>{0.0, 1.0}(*engine); };
}

Duration asked_pause(std::optional<Duration> asked, const Random& random) {
  if (!asked) {
    return Duration::zero();
  }
  const Duration bounded = std::clamp(*asked, Duration::zero(), kLongestAskedPause);
  return bounded + part_of(bounded / 4, random);
}

Backoff::Backoff(Delay cause, Random random)
    : Backoff(delay_rule(cause).from, delay_rule(cause).to, delay_rule(cause).cap,
              std::move(random)) {}

Backoff::Backoff(Duration from, Duration to, Duration cap, Random random)
    : from_(from), to_(to), cap_(std::max(to, cap)), random_(std::move(random)) {}

Duration Backoff::next(std::optional<Duration> asked) {
  Duration floor = from_;
  Duration ceiling = to_;
  for (int doublings = failures_; doublings > 0 && ceiling < cap_; --doublings) {
    floor = std::max(floor, std::min(floor * 2, cap_ / 2));
    ceiling = std::min(ceiling, cap_ / 2) * 2;
  }
  ++failures_;
  const Duration own = floor + part_of(ceiling - floor, random_);
  return std::max(own, asked_pause(asked, random_));
}

}  // namespace slurmlet
