#include "slurm/sources/controller_poll.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "slurm/answers/sinfo.h"

namespace slurmlet::slurm {
namespace {

// Names that differ in their last digits have hashes that are near each other; this spreads them
// (the finalizer of SplitMix64).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// Where in [0, range) this node stands; `salt` keeps two uses of one name apart.
Duration phase(const std::string& node, std::string_view salt, Duration range) {
  if (range <= Duration::zero()) {
    return Duration::zero();
  }
  const auto hash = mixed(stable_hash(std::string{salt} + node));
  return Duration{static_cast<Duration::rep>(hash % static_cast<std::uint64_t>(range.count()))};
}

// Until the next time of the wall clock that is this node's in each interval.
Duration until_own_time(const std::string& node, std::string_view salt, Duration interval,
                        WallTime now) {
  const Duration wall = std::chrono::duration_cast<Duration>(now.time_since_epoch());
  const Duration into = ((wall - phase(node, salt, interval)) % interval + interval) % interval;
  return interval - into;
}

Duration stretched(const PollSettings& settings) {
  const Duration shortest =
      Duration{std::chrono::hours{1}} / std::max(1, settings.questions_per_hour);
  return std::max({settings.interval, shortest, Duration{std::chrono::milliseconds{100}}});
}

}  // namespace

ControllerPoll::ControllerPoll(const PollSettings& settings, std::string node,
                               std::unique_ptr<NodeSource> source, const Random& random)
    : settings_(settings),
      budget_(settings_.questions_per_hour, stretched(settings_)),
      interval_(stretched(settings_)),
      node_(std::move(node)),
      source_(std::move(source)),
      backoff_(std::min(settings_.first_retry, settings_.max_backoff), settings_.max_backoff,
               random),
      rate_backoff_(settings_.rate_limit_retry,
                    std::max(settings_.rate_limit_retry, settings_.max_backoff), random) {}

void ControllerPoll::forget() {
  answer_ = {};
  answered_steady_.reset();
  due_.reset();
  due_is_tick_ = false;
  tick_replaced_ = false;
  evidence_ = false;
  confirm_at_.reset();
  backoff_.reset();
  rate_backoff_.reset();
}

void ControllerPoll::set_node(const std::string& node) {
  if (node == node_ && !node.empty()) {
    return;
  }
  node_ = node;
  forget();
}

void ControllerPoll::set_standing_failure(const QueryFailure& failure) {
  const bool told =
      node_.empty() && answer_.failure == failure.cause && answer_.failure_detail == failure.detail;
  if (!told) {
    node_.clear();
    forget();
    record_failure(failure);
  }
}

// Causes on this machine cost slurmctld nothing and end by something that happens on this machine.
bool ControllerPoll::evidence_counts() const {
  if (!answer_.failure) {
    return true;
  }
  switch (*answer_.failure) {
    case node::SlurmFailure::kMungeUnavailable:
    case node::SlurmFailure::kSackUnavailable:
    case node::SlurmFailure::kBadConfiguration:
    case node::SlurmFailure::kCommandMissing:
    case node::SlurmFailure::kFeedUnavailable:
    case node::SlurmFailure::kNotInSlurm:
      return true;
    default:
      return false;
  }
}

void ControllerPoll::ask_soon(Now /*now*/) { evidence_ = true; }

// Whether an answer of that time does not turn stale when the coming tick is left out.
bool ControllerPoll::lasts(SteadyTime answered) const {
  return *due_ + interval_ + interval_ / 4 < answered + settings_.stale_after;
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
  // Before the first question there is nothing to hurry: it comes within first_spread.
  // A feed has no news before its reader's next dump.
  if (!evidence_ || !asked_ || !due_ || !evidence_counts() || source_->is_free()) {
    return kNever;
  }
  SteadyTime due = budget_.token_at(now);
  if (const auto from = replaces_tick_from(now)) {
    due = std::min(due, *from);
  }
  return std::max(due, *asked_ + settings_.min_gap);
}

SteadyTime ControllerPoll::question_due(SteadyTime now) const {
  return std::max(std::min(*due_, evidence_due(now)), open_at(now));
}

SteadyTime ControllerPoll::open_at(SteadyTime now) const {
  return source_->is_free() ? now : budget_.open_at(now);
}

void ControllerPoll::plan_tick(Now now) {
  due_ = now.steady + until_own_time(node_, "interval:", interval_, now.wall);
  due_is_tick_ = true;
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

SteadyTime ControllerPoll::want_confirmation(bool wanted, Now now) {
  if (!wanted || source_->is_free() || node_.empty()) {
    confirm_at_.reset();
  } else if (!confirm_at_) {
    const Duration interval = std::max(settings_.confirm_interval, Duration{1});
    confirm_at_ = now.steady + until_own_time(node_, "confirm:", interval, now.wall);
    if (confirmed_ && *confirm_at_ < *confirmed_ + interval / 2) {
      *confirm_at_ += interval;  // the wall clock was set
    }
  }
  return source_->busy() ? kNever : confirmation_due(now.steady);
}

SteadyTime ControllerPoll::confirmation_due(SteadyTime now) const {
  return confirm_at_ && !answer_.failure ? std::max(*confirm_at_, open_at(now)) : kNever;
}

void ControllerPoll::start(Now now, Query query) {
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
  if (auto failure = source_->ask(node_, query, now)) {
    fail(now, *std::move(failure));
    return;
  }
  asked_for_free_ = source_->is_free();
  if (!asked_for_free_) {
    budget_.spend(now.steady);
  }
  ++counters_.questions;
}

// A node of this name may be in another cluster as well: slurm.restURL or the environment of a
// wrapper script lead there.
std::optional<QueryFailure> ControllerPoll::other_cluster(const QueryResult& result) const {
  const std::string theirs = result.record ? to_lower(result.record->cluster) : "";
  if (theirs.empty() || cluster_.empty() || theirs == cluster_) {
    return std::nullopt;
  }
  return QueryFailure{node::SlurmFailure::kOtherCluster,
                      source_->name() + " answers for cluster \"" + theirs +
                          "\", but slurm.conf here has ClusterName=" + cluster_};
}

void ControllerPoll::finish(Now now, QueryResult result) {
  if (auto failure = other_cluster(result)) {
    result.failure = std::move(failure);
  }
  if (asked_for_free_ && !source_->is_free()) {
    budget_.spend(now.steady);  // the feed failed and slurmctld was asked in its place
  }
  if (result.failure) {
    fail(now, *std::move(result.failure));
    follow(now.steady, result.next_in);
    return;
  }
  ++counters_.answers;
  answer_.record = std::move(result.record);
  answer_.answered_at = result.as_of.value_or(now.wall);
  answer_.failure.reset();
  answer_.failure_detail.clear();
  const Duration age = now.wall - *answer_.answered_at;
  answered_steady_ = now.steady - std::max(age, Duration::zero());
  backoff_.reset();
  rate_backoff_.reset();
  plan_tick(now);
  follow(now.steady, result.next_in);
}

// The source's own time takes the place of the cadence and of the back-off.
void ControllerPoll::follow(SteadyTime now, std::optional<Duration> next_in) {
  if (next_in && source_->is_free()) {
    due_ = now + std::max<Duration>(*next_in, std::chrono::milliseconds{100});
    due_is_tick_ = false;
    tick_replaced_ = false;
  }
}

void ControllerPoll::record_failure(QueryFailure failure) {
  ++counters_.failures;
  ++counters_.failures_by_cause[failure.cause];
  answer_.failure = failure.cause;
  answer_.failure_detail = std::move(failure.detail);
}

// A retry that comes sooner than the cadence would is beside it.
Duration ControllerPoll::retry_delay(node::SlurmFailure cause, SteadyTime now) {
  const Duration delay =
      cause == node::SlurmFailure::kRateLimited ? rate_backoff_.next() : backoff_.next();
  return delay >= interval_ || budget_.take_token(now) ? delay : delay + interval_;
}

void ControllerPoll::fail(Now now, QueryFailure failure) {
  const auto cause = failure.cause;
  record_failure(std::move(failure));
  if (cause == node::SlurmFailure::kNotInSlurm) {
    backoff_.reset();
    plan_tick(now);
    return;
  }
  due_ = now.steady + retry_delay(cause, now.steady);
  due_is_tick_ = false;
  tick_replaced_ = false;
}

// Starts what is due: a tick, a retry, or a question on evidence.
void ControllerPoll::start_due(Now now) {
  if (now.steady >= *due_) {
    if (leaves_tick_out(now.steady)) {
      tick_replaced_ = false;
      plan_tick(now);
    } else if (now.steady >= open_at(now.steady)) {
      tick_replaced_ = false;
      start(now, Query::kOneNode);
    }
    return;
  }
  if (now.steady < question_due(now.steady)) {
    return;
  }
  if (const auto from = replaces_tick_from(now.steady); from && now.steady >= *from) {
    tick_replaced_ = true;
  } else {
    (void)budget_.take_token(now.steady);  // evidence_due() saw it
  }
  start(now, Query::kOneNode);
}

SteadyTime ControllerPoll::step(Now now) {
  stepped_ = now.steady;
  if (auto result = source_->poll(now)) {
    counters_.last_took = now.steady - asked_.value_or(now.steady);
    if (asked_node_ == node_) {
      finish(now, *std::move(result));
    }
  }
  if (node_.empty()) {
    return source_->wake_at();
  }
  if (!due_) {
    due_ = now.steady + phase(node_, "first:", std::min(settings_.first_spread, interval_));
  }
  if (!source_->busy() && now.steady >= confirmation_due(now.steady)) {
    confirm_at_.reset();
    confirmed_ = now.steady;
    start(now, Query::kFull);
  } else if (!source_->busy()) {
    start_due(now);
  }
  SteadyTime wake = source_->busy()
                        ? source_->wake_at()
                        : std::min(question_due(now.steady), confirmation_due(now.steady));
  if (answered_steady_ && now.steady <= *answered_steady_ + settings_.stale_after) {
    wake = std::min(wake, *answered_steady_ + settings_.stale_after + std::chrono::milliseconds{1});
  }
  return wake;
}

PollCounters ControllerPoll::counters() const {
  PollCounters counters = counters_;
  counters.source = source_->counters();
  counters.questions_left = budget_.left(stepped_);
  return counters;
}

node::SlurmAnswer ControllerPoll::answer(Now now) const {
  node::SlurmAnswer answer = answer_;
  answer.source = source_->name();
  answer.stale = answered_steady_ && now.steady > *answered_steady_ + settings_.stale_after;
  return answer;
}

}  // namespace slurmlet::slurm
