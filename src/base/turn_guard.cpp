#include "base/turn_guard.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slurmlet {

TurnGuard::TurnGuard(std::string thread, int turns_per_second)
    : thread_(std::move(thread)),
      turns_per_second_(turns_per_second),
      cost_(Duration{std::chrono::seconds{1}} / turns_per_second),
      stock_(cost_ * kStock) {}

Duration TurnGuard::turn(SteadyTime now, std::string_view woken_by) {
  if (last_ != SteadyTime{}) {
    stock_ = std::min(cost_ * kStock, stock_ + std::max(now - last_, Duration::zero()));
  }
  last_ = now;
  if (stock_ >= cost_) {
    stock_ -= cost_;
    return Duration::zero();
  }
  warn(now, woken_by);
  slowed_.fetch_add(1, std::memory_order_relaxed);
  last_ = now + cost_;  // the pause pays for the turn
  return cost_;
}

void TurnGuard::warn(SteadyTime now, std::string_view woken_by) {
  if (slowed_at_ == SteadyTime::min() || now - slowed_at_ >= kQuiet) {
    log::warning("the " + thread_ + " thread ran more than " + std::to_string(kStock) +
                 " loop iterations in a short time, the last one woken by " +
                 std::string{woken_by} + "; it is limited to " + std::to_string(turns_per_second_) +
                 " a second");
  }
  slowed_at_ = now;
}

}  // namespace slurmlet
