#pragma once

// Whether the daemon is alive, and when its service manager has to hear of it: the rule behind
// WATCHDOG=1 (sd_watchdog_enabled(3)). Pure; the clock is handed in. Not thread-safe (ServiceReport
// locks).
//
// Two loops, one each for the Node and its Lease, say when a turn begins and until when they sleep.
// A loop hangs when a turn, or its return from sleep, is late by more than the patience. Only while
// no loop hangs is there a ping, whichever of them has woken: so the daemon has no wake-up of its
// own for the watchdog.

#include <array>
#include <optional>

#include "base/clock.h"

namespace slurmlet::status {

enum class Loop { kMain, kLease };

class Watchdog {
 public:
  // `interval`: the manager's, a ping is needed at least this often; nothing = nobody watches, and
  // no ping is ever due.
  explicit Watchdog(std::optional<Duration> interval);

  // A turn begins, or the next part of one.
  void works(Loop loop, SteadyTime now);
  // It sleeps until `until`; kNever: until somebody wakes it.
  void sleeps(Loop loop, SteadyTime until);
  // The loop has ended, or has not begun: it cannot hang.
  void ended(Loop loop);

  bool hangs(Loop loop, SteadyTime now) const;
  bool alive(SteadyTime now) const;

  // Whether a loop that comes again at `again` should ping now: all is alive, and the last ping
  // would be too old then.
  bool is_due(SteadyTime now, SteadyTime again) const;
  void pinged(SteadyTime now) { pinged_ = now; }

  // What a turn (or a part of one that calls works() anew) may take, and by how much a wake-up may
  // be late: more than the few calls of it, of ten seconds each, to an API server that swallows
  // every packet.
  Duration patience() const { return patience_; }

 private:
  struct State {
    bool runs = false;
    SteadyTime expected{};  // back from sleep, or the turn's end
  };
  State& at(Loop loop) { return loops_[static_cast<std::size_t>(loop)]; }
  const State& at(Loop loop) const { return loops_[static_cast<std::size_t>(loop)]; }

  std::optional<Duration> interval_;
  Duration patience_;
  std::array<State, 2> loops_{};
  std::optional<SteadyTime> pinged_;
};

}  // namespace slurmlet::status
