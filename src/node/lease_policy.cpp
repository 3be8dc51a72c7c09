#include "node/lease_policy.h"

#include <algorithm>
#include <chrono>

namespace slurmlet::node {

WallTime next_renew_time(WallTime now, WallTime last) {
  return std::max(now, last + std::chrono::microseconds{1});
}

Duration renew_interval(Duration lease_duration, const Random& random) {
  const Duration usual = lease_duration / 4;
  return usual + part_of(usual / 25, random);
}

Duration renew_out_of_step(Duration lease_duration, Duration spread, const Random& random) {
  const Duration usual = lease_duration / 4;
  const Duration apart = std::clamp<Duration>(spread, usual / 10, usual * 3 / 2);
  return apart >= usual ? apart : usual - part_of(usual - apart, random);
}

}  // namespace slurmlet::node
