#include "node/lease_policy.h"

#include <algorithm>
#include <chrono>

namespace slurmlet::node {
namespace {

Duration scaled(Duration duration, double factor) {
  return Duration{static_cast<Duration::rep>(static_cast<double>(duration.count()) * factor)};
}

}  // namespace

WallTime next_renew_time(WallTime now, WallTime last) {
  return std::max(now, last + std::chrono::microseconds{1});
}

Duration renew_interval(Duration lease_duration, const Random& random) {
  return scaled(lease_duration / 4, 1.0 + kLeaseJitter * random());
}

Duration renew_out_of_step(Duration lease_duration, Duration spread, const Random& random) {
  const Duration usual = lease_duration / 4;
  const Duration apart = std::clamp<Duration>(spread, usual / 10, usual * 3 / 2);
  return apart >= usual ? apart : usual - part_of(usual - apart, random);
}

Duration spread_report(Duration interval, const Random& random) {
  return delay(Delay::kReport, random, interval);
}

}  // namespace slurmlet::node
