#include "sync/slurmd_monitor.h"

#include <algorithm>
#include <utility>

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;

// Slurm sets NOT_RESPONDING for some seconds after each RESUME, until slurmd has registered again.
constexpr Duration kDoubt = std::chrono::seconds{20};

bool is_away(Liveness liveness) {
  return liveness == Liveness::kAbsent || liveness == Liveness::kStopped;
}

}  // namespace

SlurmdMonitor::SlurmdMonitor(slurm::SlurmdWatchSettings settings,
                             std::unique_ptr<CommandRunner> version_runner,
                             std::unique_ptr<CommandRunner> unit_runner, Duration grace)
    : settings_(std::move(settings)),
      watch_(settings_, std::move(version_runner), std::move(unit_runner)),
      grace_(grace) {}

void SlurmdMonitor::configure(const slurm::SlurmdWatchSettings& settings) {
  if (settings != settings_) {
    settings_ = settings;
    watch_.reconfigure(settings);
  }
}

SlurmdMonitor::Change SlurmdMonitor::step(Now now) {
  next_watch_ = watch_.step(now);
  const node::SlurmdFacts before = std::exchange(facts_, watch_.facts());
  Change change;
  change.went = is_gone() && before.liveness == Liveness::kRunning;
  change.started = facts_.pid != 0 && facts_.pid != before.pid;
  change.came = change.started && is_away(before.liveness);
  if (change.went) {
    absent_since_ = now.steady;
  } else if (!is_gone()) {
    absent_since_.reset();
  }
  return change;
}

SteadyTime SlurmdMonitor::wake_at(Now now) const {
  return std::min(
      {next_watch_, grace_is_over(now) ? kNever : grace_end(), doubt_at_.value_or(kNever)});
}

bool SlurmdMonitor::is_gone() const { return is_away(facts_.liveness); }

bool SlurmdMonitor::doubts(const node::SlurmAnswer& answer, Now now) {
  const bool differs = answer.record && !answer.stale && !answer.failure &&
                       answer.record->state.has("NOT_RESPONDING") &&
                       facts_.liveness == Liveness::kRunning;
  if (!differs) {
    doubt_at_.reset();
  } else if (!doubt_at_) {
    doubt_at_ = now.steady + kDoubt;
  } else if (*doubt_at_ != kNever && now.steady >= *doubt_at_) {
    doubt_at_ = kNever;
    return true;
  }
  return false;
}

}  // namespace slurmlet::sync
