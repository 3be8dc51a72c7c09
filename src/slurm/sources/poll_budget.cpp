#include "slurm/sources/poll_budget.h"

#include <algorithm>
#include <utility>

namespace slurmlet::slurm {
namespace {

constexpr Duration kHour = std::chrono::hours{1};

// Part of an hour, rounded up.
Duration hours(double part) {
  return Duration{static_cast<Duration::rep>(part * static_cast<double>(kHour.count())) + 1};
}

}  // namespace

PollBudget::PollBudget(int per_hour, Duration interval) : per_hour_(std::max(1, per_hour)) {
  // What the cadence uses in any hour, at most: its phase may begin and end one.
  const auto cadence =
      static_cast<int>(kHour / std::max<Duration>(interval, kHour / per_hour_)) + 1;
  const int spare = per_hour_ - cadence;
  constexpr int kAmple = 12;
  if (spare >= kAmple) {
    burst_ = kAmple / 2.0;
    tokens_per_hour_ = spare - burst_;
    scarce_from_ = per_hour_ + 1;
  } else {
    // A fifteenth of the budget at once and as much again in an hour; the cadence yields to it.
    const int share = std::max(1, per_hour_ / 15);
    burst_ = share;
    tokens_per_hour_ = share;
    scarce_from_ = std::max(1, per_hour_ - 3 * share);
  }
  tokens_ = burst_;
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

double PollBudget::tokens(SteadyTime now) const {
  if (!counted_ || now <= *counted_) {
    return tokens_;
  }
  const auto part =
      static_cast<double>((now - *counted_).count()) / static_cast<double>(kHour.count());
  return std::min(burst_, tokens_ + part * tokens_per_hour_);
}

SteadyTime PollBudget::token_at(SteadyTime now) const {
  const double have = tokens(now);
  return have >= 1.0 ? now : now + hours((1.0 - have) / tokens_per_hour_);
}

bool PollBudget::take_token(SteadyTime now) {
  const double have = tokens(now);
  if (have < 1.0) {
    return false;
  }
  tokens_ = have - 1.0;
  counted_ = now;
  return true;
}

}  // namespace slurmlet::slurm
