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
  const auto spread = static_cast<double>(bounded.count() / 4) * random();
  return bounded + Duration{static_cast<Duration::rep>(spread)};
}

Backoff::Backoff(Duration initial, Duration cap, Random random)
    : initial_(initial), cap_(cap), random_(std::move(random)) {}

Duration Backoff::next(std::optional<Duration> asked) {
  Duration ceiling = initial_;
  for (int doublings = failures_; doublings > 0 && ceiling < cap_; --doublings) {
    ceiling = ceiling > cap_ / 2 ? cap_ : ceiling * 2;
  }
  ++failures_;
  const auto spread = static_cast<double>((ceiling - initial_).count()) * random_();
  const Duration own = initial_ + Duration{static_cast<Duration::rep>(spread)};
  return std::max(own, asked_pause(asked, random_));
}

}  // namespace slurmlet
