#include "slurm/sources/poll_budget.h"

#include <algorithm>
#include <utility>

namespace slurmlet::slurm {
namespace {

constexpr Duration kHour = std::chrono::hours{1};

TokenBucket bucket(double burst, double per_hour) {
  return TokenBucket{{per_hour / std::chrono::duration<double>(kHour).count(), burst}};
}

}  // namespace

PollBudget::PollBudget(int per_hour, Duration interval)
    : per_hour_(std::max(1, per_hour)), tokens_(bucket(0, 0)) {
  // What the cadence uses in any hour, at most: its phase may begin and end one.
  const auto cadence =
      static_cast<int>(kHour / std::max<Duration>(interval, kHour / per_hour_)) + 1;
  const int spare = per_hour_ - cadence;
  constexpr int kAmple = 12;
  if (spare >= kAmple) {
    constexpr double kBurst = kAmple / 2.0;
    tokens_ = bucket(kBurst, spare - kBurst);
    scarce_from_ = per_hour_ + 1;
  } else {
    // A fifteenth of the budget at once and as much again in an hour; the cadence yields to it.
    const int share = std::max(1, per_hour_ / 15);
    tokens_ = bucket(share, share);
    scarce_from_ = std::max(1, per_hour_ - 3 * share);
  }
}

void PollBudget::change(int per_hour, Duration interval) {
  std::deque<SteadyTime> starts = std::move(starts_);
  *this = PollBudget{per_hour, interval};
  while (starts.size() > static_cast<std::size_t>(per_hour_)) {
    starts.pop_front();
  }
  starts_ = std::move(starts);
}

int PollBudget::used(SteadyTime now) const {
  const auto first = std::upper_bound(starts_.begin(), starts_.end(), now - kHour);
  return static_cast<int>(starts_.end() - first);
}

SteadyTime PollBudget::open_at(SteadyTime now) const {
  if (starts_.size() < static_cast<std::size_t>(per_hour_)) {
    return now;
  }
  return std::max(now, starts_.front() + kHour);
}

void PollBudget::spend(SteadyTime now) {
  starts_.push_back(now);
  if (starts_.size() > static_cast<std::size_t>(per_hour_)) {
    starts_.pop_front();
  }
}

int PollBudget::left(SteadyTime now) const { return std::max(0, per_hour_ - used(now)); }

bool PollBudget::is_scarce(SteadyTime now) const { return used(now) >= scarce_from_; }

}  // namespace slurmlet::slurm
