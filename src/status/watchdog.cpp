#include "status/watchdog.h"

#include <algorithm>

namespace slurmlet::status {
namespace {

constexpr Duration kLeastPatience = std::chrono::seconds{30};

SteadyTime later(SteadyTime time, Duration by) { return time > kNever - by ? kNever : time + by; }

}  // namespace

Watchdog::Watchdog(std::optional<Duration> interval)
    : interval_(interval),
      patience_(std::max(kLeastPatience, interval.value_or(Duration::zero()) * 3 / 4)) {}

void Watchdog::works(Loop loop, SteadyTime now) { at(loop) = {true, later(now, patience_)}; }

void Watchdog::sleeps(Loop loop, SteadyTime until) { at(loop) = {true, later(until, patience_)}; }

void Watchdog::ended(Loop loop) { at(loop) = {}; }

bool Watchdog::hangs(Loop loop, SteadyTime now) const {
  return at(loop).runs && now > at(loop).expected;
}

bool Watchdog::alive(SteadyTime now) const {
  return !hangs(Loop::kMain, now) && !hangs(Loop::kLease, now);
}

// Not later than at three fifths of the interval, so that a wake-up that is late by a third of it
// costs nothing.
bool Watchdog::is_due(SteadyTime now, SteadyTime again) const {
  if (!interval_ || !alive(now)) {
    return false;
  }
  return !pinged_ || again > later(*pinged_, *interval_ * 3 / 5);
}

}  // namespace slurmlet::status
