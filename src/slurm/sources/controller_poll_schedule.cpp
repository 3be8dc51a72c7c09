// ControllerPoll: when the next question is due.

#include <algorithm>
#include <utility>

#include "base/delay.h"
#include "node/slurm_failure.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::slurm {
namespace {

constexpr Duration kHeldUp = std::chrono::seconds{1};

}  // namespace

bool ControllerPoll::evidence_counts() const {
  return !answer_.failure || node::kind_of(*answer_.failure).has(node::kEndsHere);
}

// Until this node's tick, if all nodes ticked within `spread`.
Duration ControllerPoll::until_place(Now now, Duration spread) const {
  return hurried(place_.until_own_time(interval_, "interval:", now.wall), interval_, spread);
}

void ControllerPoll::ask_soon(Now now) {
  if (!std::exchange(evidence_, true)) {
    evidence_from_ = now.steady + until_place(now, settings_.evidence_spread);
  }
}

// How much later than `due` a question may come, so that an answer of that time has not turned
// stale before another one, an interval later.
Duration ControllerPoll::spare(SteadyTime answered, SteadyTime due) const {
  return answered + settings_.stale_after - (due + interval_ + interval_ / 4);
}

// Whether it does not turn stale when the coming tick is left out.
bool ControllerPoll::lasts(SteadyTime answered) const {
  return spare(answered, *due_) > Duration::zero();
}

// From when on a question takes the place of the coming tick: when the tick will be left out for
// it, and once. So the number of questions stays that of the ticks.
std::optional<SteadyTime> ControllerPoll::replaces_tick_from(SteadyTime now) const {
  if (!due_is_tick_ || tick_replaced_ || !asked_ || !lasts(now)) {
    return std::nullopt;
  }
  const SteadyTime from = *due_ - interval_ * 3 / 4 + std::chrono::milliseconds{1};
  return budget_.is_scarce(now) ? std::max(from, *asked_ + interval_ * 7 / 4) : from;
}

// When a question on evidence may start.
SteadyTime ControllerPoll::evidence_due(SteadyTime now) const {
  // Before the first question there is nothing to hurry: it has a spread of its own.
  // A free source has its news at once.
  if (!evidence_ || !asked_ || !due_ || !evidence_counts() || source_->is_free()) {
    return kNever;
  }
  SteadyTime due = settings_.has_room() ? budget_.token_at(now) : kNever;
  if (const auto from = replaces_tick_from(now)) {
    due = std::min(due, *from);
  }
  return std::max({due, evidence_from_, *asked_ + settings_.min_gap});
}

SteadyTime ControllerPoll::question_due(SteadyTime now) const {
  return std::max(std::min(*due_, evidence_due(now)), open_at(now));
}

void ControllerPoll::plan_tick(Now now) {
  due_ = now.steady + place_.until_own_time(interval_, "interval:", now.wall);
  due_is_tick_ = true;
  postponed_ = false;
}

// A question was asked for it a short while ago, or there must remain some for evidence.
bool ControllerPoll::leaves_tick_out(SteadyTime now) const {
  if (!due_is_tick_ || !asked_) {
    return false;
  }
  if (now < *asked_ + std::min(settings_.min_gap, interval_ / 2)) {
    return true;
  }
  if (answered_steady_ && !lasts(*answered_steady_)) {
    return false;
  }
  const Duration rest = budget_.is_scarce(now) ? interval_ * 7 / 4 : interval_ * 3 / 4;
  return now < *asked_ + rest;
}

// A tick more than kHeldUp late: a call to the API server hung, probably on many nodes at once.
// They do not query together now. Once, and never so long that a retry would come too late for the
// last answer.
bool ControllerPoll::postpones_tick(Now now) {
  if (!due_is_tick_ || postponed_ || now.steady - kHeldUp <= wake_ || !answered_steady_) {
    return false;
  }
  const Duration spread = std::min(settings_.first_spread, spare(*answered_steady_, now.steady));
  if (spread <= Duration::zero()) {
    return false;
  }
  due_ = now.steady + part_of(spread, random_);
  postponed_ = true;
  tick_replaced_ = false;
  evidence_from_ =
      std::max(evidence_from_, now.steady + until_place(now, settings_.evidence_spread));
  return true;
}

SteadyTime ControllerPoll::want_confirmation(bool wanted, Now now) {
  if (!wanted || source_->is_free() || node_.empty()) {
    confirm_at_.reset();
  } else if (!confirm_at_) {
    const Duration interval = std::max(settings_.confirm_interval, Duration{1});
    confirm_at_ = now.steady + place_.until_own_time(interval, "confirm:", now.wall);
    if (confirmed_ && *confirm_at_ < *confirmed_ + interval / 2) {
      *confirm_at_ += interval;  // the wall clock was set
    }
  }
  return source_->busy() ? kNever : confirmation_due(now.steady);
}

SteadyTime ControllerPoll::confirmation_due(SteadyTime now) const {
  return confirm_at_ && !answer_.failure ? std::max(*confirm_at_, open_at(now)) : kNever;
}

}  // namespace slurmlet::slurm
