#pragma once

// A net under a loop that turns and turns: a descriptor that nobody reads, a wake-up that is always
// due. A thread has a stock of turns that is filled up again slowly. Once it is used up, each turn
// costs a pause, so that a mistake costs little CPU time and the loop still does all of its work;
// this is logged once with what woke the loop, and counted.
//
// Belongs to one thread, except slowed().

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace slurmlet {

class TurnGuard {
 public:
  static constexpr int kStock = 1000;  // a thousand pods at once are no mistake
  // Without a slowed turn for so long, the next one is news again.
  static constexpr Duration kQuiet = std::chrono::minutes{10};

  // `thread` is for the log: "main". In the long run it may have so many turns a second.
  TurnGuard(std::string thread, int turns_per_second);

  // A turn is over and the next one begins; `woken_by` says why. Returns how long to wait before
  // it.
  Duration turn(SteadyTime now, std::string_view woken_by);

  // Turns that had to wait. Thread-safe.
  std::uint64_t slowed() const { return slowed_.load(std::memory_order_relaxed); }

 private:
  void warn(SteadyTime now, std::string_view woken_by);

  std::string thread_;
  int turns_per_second_;
  Duration cost_;   // of a turn
  Duration stock_;  // as the time in which it fills up
  SteadyTime last_{};
  SteadyTime slowed_at_ = SteadyTime::min();
  std::atomic<std::uint64_t> slowed_{0};
};

}  // namespace slurmlet
