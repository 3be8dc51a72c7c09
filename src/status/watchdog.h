#pragma once

// Whether the daemon is alive, and when WATCHDOG=1 is due (sd_watchdog_enabled(3)). Pure; not
// thread-safe (ServiceReport locks).
//
// The loops for the Node and its Lease report when a step starts and until when they sleep. A loop
// hangs if a step or a wake-up is later than patience(). Either loop pings while none hangs, so the
// watchdog needs no wake-ups of its own.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace slurmlet::status {

enum class Loop { kMain, kLease };

class Watchdog {
 public:
  // `interval`: the manager's longest time between pings; nothing = off.
  explicit Watchdog(std::optional<Duration> interval)
      : interval_(interval),
        patience_(std::max(kLeastPatience, interval.value_or(Duration::zero()) * 3 / 4)) {}

  // A step starts, or its next part.
  void works(Loop loop, SteadyTime now) { expected_[index(loop)] = later(now, patience_); }
  // The loop sleeps until `until`; kNever: until it is woken.
  void sleeps(Loop loop, SteadyTime until) { expected_[index(loop)] = later(until, patience_); }
  // The loop does not run, so it cannot hang.
  void ended(Loop loop) { expected_[index(loop)] = kNever; }

  bool hangs(Loop loop, SteadyTime now) const { return now > expected_[index(loop)]; }
  bool alive(SteadyTime now) const { return !hangs(Loop::kMain, now) && !hangs(Loop::kLease, now); }

  // Whether a loop that wakes next at `again` should ping now: no loop hangs, and the last ping
  // would be too old then. Pings within three fifths of the interval tolerate a wake-up that is
  // late by a third of it.
  bool is_due(SteadyTime now, SteadyTime again) const {
    return interval_ && alive(now) && (!pinged_ || again > later(*pinged_, *interval_ * 3 / 5));
  }
  void pinged(SteadyTime now) { pinged_ = now; }

  // How long a step (or a part that starts with works()) may take, and how late a wake-up may be:
  // longer than a step's few calls to an API server that drops packets, ten seconds each (a renewal
  // of the Lease: twenty).
  Duration patience() const { return patience_; }

 private:
  static constexpr Duration kLeastPatience = std::chrono::seconds{30};
  static std::size_t index(Loop loop) { return static_cast<std::size_t>(loop); }
  static SteadyTime later(SteadyTime time, Duration by) {
    return time > kNever - by ? kNever : time + by;
  }

  std::optional<Duration> interval_;
  Duration patience_;
  // Latest end of each loop's step or sleep; kNever = not running.
  std::array<SteadyTime, 2> expected_{kNever, kNever};
  std::optional<SteadyTime> pinged_;
};

}  // namespace slurmlet::status
