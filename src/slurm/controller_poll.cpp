#include "slurm/controller_poll.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

constexpr Duration kHour = std::chrono::hours{1};

// Where in [0, range) this node stands; `salt` keeps two uses of one name apart.
Duration phase(const std::string& node, std::string_view salt, Duration range) {
  if (range <= Duration::zero()) {
    return Duration::zero();
  }
  const auto hash = stable_hash(std::string{salt} + node);
  return Duration{static_cast<Duration::rep>(hash % static_cast<std::uint64_t>(range.count()))};
}

}  // namespace

ControllerPoll::ControllerPoll(PollSettings settings, std::string node,
                               std::unique_ptr<CommandRunner> runner, Random random)
    : settings_(std::move(settings)),
      node_(std::move(node)),
      runner_(std::move(runner)),
      backoff_(std::min(settings_.first_retry, settings_.max_backoff), settings_.max_backoff,
               std::move(random)),
      tokens_(settings_.extra_burst) {}

void ControllerPoll::set_node(const std::string& node) {
  if (node == node_) {
    return;
  }
  node_ = node;
  answer_ = {};
  answered_steady_.reset();
  due_.reset();
  backoff_.reset();
}

void ControllerPoll::refill(SteadyTime now) {
  if (refilled_ && now > *refilled_) {
    const auto share =
        static_cast<double>((now - *refilled_).count()) / static_cast<double>(kHour.count());
    tokens_ = std::min<double>(settings_.extra_burst, tokens_ + share * settings_.extra_per_hour);
  }
  refilled_ = now;
}

// Causes on this machine cost slurmctld nothing and end by something that happens on this machine.
bool ControllerPoll::evidence_counts() const {
  if (!answer_.failure) {
    return true;
  }
  switch (*answer_.failure) {
    case node::SlurmFailure::kMungeUnavailable:
    case node::SlurmFailure::kBadConfiguration:
    case node::SlurmFailure::kCommandMissing:
    case node::SlurmFailure::kNotInSlurm:
      return true;
    default:
      return false;
  }
}

void ControllerPoll::ask_soon(Now now) {
  refill(now.steady);
  evidence_ = true;
}

// When a question on evidence may start: after the gap, and when a token is there. Valid right
// after refill().
SteadyTime ControllerPoll::extra_due() const {
  // Before the first question there is nothing to hurry: it comes within first_spread.
  if (!evidence_ || !asked_ || !refilled_ || !evidence_counts() || settings_.extra_per_hour <= 0) {
    return kNever;
  }
  SteadyTime due = *refilled_;
  if (tokens_ < 1.0) {
    const double hours = (1.0 - tokens_) / settings_.extra_per_hour;
    due += Duration{static_cast<Duration::rep>(hours * static_cast<double>(kHour.count())) + 1};
  }
  return std::max(due, *asked_ + settings_.min_gap);
}

// The next wall-clock time of this node's phase that keeps the gap to the question just asked.
SteadyTime ControllerPoll::next_tick(Now now) const {
  const Duration interval = std::max<Duration>(settings_.interval, std::chrono::milliseconds{100});
  const Duration wall = std::chrono::duration_cast<Duration>(now.wall.time_since_epoch());
  const Duration into =
      ((wall - phase(node_, "interval:", interval)) % interval + interval) % interval;
  const SteadyTime tick = now.steady + (interval - into);
  const Duration gap = std::min(settings_.min_gap, interval / 2);
  return asked_ && tick < *asked_ + gap ? tick + interval : tick;
}

void ControllerPoll::start(Now now) {
  evidence_ = false;
  asked_ = now.steady;
  asked_node_ = node_;
  if (!valid_node_name(node_)) {
    fail(now,
         {node::SlurmFailure::kBadConfiguration,
          "'" + node_ + "' is not a Slurm node name; set slurm.nodeName to the name of one node"});
    due_ = kNever;
    return;
  }
  if (auto started = runner_->start(sinfo_query(settings_.sinfo, node_), now.steady); !started) {
    fail(now, classify_start(started.error()));
    return;
  }
  ++counters_.questions;
}

void ControllerPoll::finish(Now now, QueryResult result) {
  if (result.failure) {
    fail(now, *std::move(result.failure));
    return;
  }
  ++counters_.answers;
  answer_.record = std::move(result.record);
  answer_.answered_at = now.wall;
  answer_.failure.reset();
  answer_.failure_detail.clear();
  answered_steady_ = now.steady;
  backoff_.reset();
  due_ = next_tick(now);
}

void ControllerPoll::fail(Now now, QueryFailure failure) {
  ++counters_.failures;
  ++counters_.failures_by_cause[failure.cause];
  answer_.failure = failure.cause;
  answer_.failure_detail = std::move(failure.detail);
  if (failure.cause == node::SlurmFailure::kNotInSlurm) {
    backoff_.reset();
    due_ = next_tick(now);
  } else {
    due_ = now.steady + backoff_.next();
  }
}

SteadyTime ControllerPoll::step(Now now) {
  refill(now.steady);
  CommandOutput output;
  if (runner_->running() && runner_->poll(now.steady, output)) {
    counters_.last_took = output.took;
    if (asked_node_ == node_) {
      finish(now, interpret(output, node_));
    }
  }
  if (node_.empty()) {
    return runner_->running() ? runner_->deadline() : kNever;
  }
  if (!due_) {
    due_ =
        now.steady + phase(node_, "first:", std::min(settings_.first_spread, settings_.interval));
  }
  if (!runner_->running()) {
    if (now.steady >= *due_) {
      start(now);
    } else if (now.steady >= extra_due()) {
      tokens_ -= 1.0;
      start(now);
    }
  }
  SteadyTime wake = runner_->running() ? runner_->deadline() : std::min(*due_, extra_due());
  if (answered_steady_ && now.steady <= *answered_steady_ + settings_.stale_after) {
    wake = std::min(wake, *answered_steady_ + settings_.stale_after + std::chrono::milliseconds{1});
  }
  return wake;
}

node::SlurmAnswer ControllerPoll::answer(Now now) const {
  node::SlurmAnswer answer = answer_;
  answer.stale = answered_steady_ && now.steady > *answered_steady_ + settings_.stale_after;
  return answer;
}

}  // namespace slurmlet::slurm
