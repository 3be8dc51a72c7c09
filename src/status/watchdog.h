#pragma once

// Whether the daemon is alive, and when its service manager has to hear of it: the rule behind
// WATCHDOG=1 (sd_watchdog_enabled(3)). Pure; the clock is handed in. Not thread-safe (ServiceReport
// locks).
//
// Two loops, one each for the Node and its Lease, say when a turn begins and until when they sleep.
// A loop hangs when a turn, or its return from sleep, is late by more than the patience. Only while
// no loop hangs is there a ping, whichever of them has woken: so the daemon has no wake-up of its
// own for the watchdog.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace slurmlet::status {

enum class Loop { kMain, kLease };

class Watchdog {
 public:
  // `interval`: the manager's, a ping is needed at least this often; nothing = nobody watches, and
  // no ping is ever due.
  explicit Watchdog(std::optional<Duration> interval)
      : interval_(interval),
        patience_(std::max(kLeastPatience, interval.value_or(Duration::zero()) * 3 / 4)) {}

  // A turn begins, or the next part of one.
  void works(Loop loop, SteadyTime now) { expected_[index(loop)] = later(now, patience_); }
  // It sleeps until `until`; kNever: until somebody wakes it.
  void sleeps(Loop loop, SteadyTime until) { expected_[index(loop)] = later(until, patience_); }
  // The loop has ended, or has not begun: it cannot hang.
  void ended(Loop loop) { expected_[index(loop)] = kNever; }

  bool hangs(Loop loop, SteadyTime now) const { return now > expected_[index(loop)]; }
  bool alive(SteadyTime now) const { return !hangs(Loop::kMain, now) && !hangs(Loop::kLease, now); }

  // Whether a loop that comes again at `again` should ping now: all is alive, and the last ping
  // would be too old then. Not later than at three fifths of the interval, so that a wake-up that
  // is late by a third of it costs nothing.
  bool is_due(SteadyTime now, SteadyTime again) const {
    return interval_ && alive(now) && (!pinged_ || again > later(*pinged_, *interval_ * 3 / 5));
  }
  void pinged(SteadyTime now) { pinged_ = now; }

  // What a turn (or a part of one that calls works() anew) may take, and by how much a wake-up may
  // be late: more than the few calls of it, of ten seconds each, to an API server that swallows
  // every packet.
  Duration patience() const { return patience_; }

 private:
  static constexpr Duration kLeastPatience = std::chrono::seconds{30};
  static std::size_t index(Loop loop) { return static_cast<std::size_t>(loop); }
  static SteadyTime later(SteadyTime time, Duration by) {
    return time > kNever - by ? kNever : time + by;
  }

  std::optional<Duration> interval_;
  Duration patience_;
  // By loop: back from sleep, or the turn's end; kNever for one that does not run.
  std::array<SteadyTime, 2> expected_{kNever, kNever};
  std::optional<SteadyTime> pinged_;
};

}  // namespace slurmlet::status
