#include "slurm/sources/controller_poll.h"

#include <algorithm>
#include <utility>

#include "base/delay.h"
#include "base/log.h"
#include "base/text.h"
#include "slurm/answers/sinfo.h"

namespace slurmlet::slurm {
namespace {

// Clocks of two hosts agree to within this.
constexpr Duration kClocks = std::chrono::minutes{1};

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
      place_(node_),
      source_(std::move(source)),
      random_(random),
      backoff_(query_backoff()),
      rate_backoff_(rate_backoff()) {}

Backoff ControllerPoll::query_backoff() const {
  return {settings_.first_retry / 3, settings_.first_retry, settings_.max_backoff, random_};
}

Backoff ControllerPoll::rate_backoff() const {
  const DelayRule& rule = delay_rule(Delay::kQueryLimited);
  return {rule.from, rule.to, settings_.max_backoff, random_};
}

void ControllerPoll::set_pace(const PollSettings& pace) {
  if (pace == settings_) {
    return;
  }
  settings_ = pace;
  if (!source_->is_free()) {
    log::info("slurmctld is queried " + pace_text(pace));
  }
  interval_ = stretched(settings_);
  budget_.change(settings_.questions_per_hour, interval_);
  backoff_ = query_backoff();
  rate_backoff_ = rate_backoff();
}

void ControllerPoll::forget() {
  answer_ = {};
  answered_steady_.reset();
  valid_for_.reset();
  due_.reset();
  due_is_tick_ = false;
  tick_replaced_ = false;
  evidence_ = false;
  confirm_at_.reset();
  backoff_.reset();
  rate_backoff_.reset();
}

void ControllerPoll::set_node(const std::string& node, const SitePlace& place) {
  place_ = place;
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
  const bool was_free = source_->is_free();
  auto failure = source_->ask(node_, query, now);
  asked_for_free_ = source_->is_free();
  if (failure) {
    was_free && !asked_for_free_ ? fall_back(now, *std::move(failure))
                                 : fail(now, *std::move(failure));
    return;
  }
  if (!asked_for_free_) {
    budget_.spend(now.steady);
    ++counters_.questions;
  }
}

// It may have failed for all nodes at once.
void ControllerPoll::fall_back(Now now, QueryFailure failure) {
  record_failure(std::move(failure));
  backoff_.reset();
  due_ = now.steady + until_place(now, interval_);
  due_is_tick_ = false;
}

// A record must not override a newer query of our own. Ages are compared: the clock may be set.
bool ControllerPoll::is_older(WallTime as_of, Now now) const {
  const Duration age = now.steady - answered_steady_.value_or(now.steady);
  const Duration theirs = now.wall - as_of;
  return asked_for_free_ && !answered_for_free_ && answered_steady_ && theirs > age &&
         (theirs > age + kClocks || age < kClocks);
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
  if (result.failure) {
    fail(now, *std::move(result.failure));
    follow(now.steady, result.next_in);
    return;
  }
  counters_.answers += asked_for_free_ ? 0 : 1;
  const WallTime as_of = result.as_of.value_or(now.wall);
  if (is_older(as_of, now)) {
    result.next_in = std::min(result.next_in.value_or(kClocks), kClocks);
  } else {
    answer_.record = std::move(result.record);
    answer_.answered_at = as_of;
    answered_for_free_ = asked_for_free_;
    answered_steady_ = now.steady - std::max<Duration>(now.wall - as_of, Duration::zero());
  }
  answer_.failure.reset();
  answer_.failure_detail.clear();
  valid_for_ = result.valid_for;
  backoff_.reset();
  rate_backoff_.reset();
  plan_tick(now);
  follow(now.steady, result.next_in);
}

void ControllerPoll::follow(SteadyTime now, std::optional<Duration> next_in) {
  if (next_in && asked_for_free_) {
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

// A retry that comes sooner than the cadence would is beside it, or else waits for it.
void ControllerPoll::plan_retry(node::SlurmFailure cause, Now now) {
  const bool limited = cause == node::SlurmFailure::kRateLimited;
  const Duration delay = limited ? rate_backoff_.next() : backoff_.next();
  const Duration own = until_place(now, interval_);
  const bool fits = delay >= interval_ || (settings_.has_room() && budget_.take_token(now.steady));
  due_ = now.steady + (fits ? delay : std::max(delay, own));
  due_is_tick_ = false;
  tick_replaced_ = false;
}

void ControllerPoll::fail(Now now, QueryFailure failure) {
  const auto cause = failure.cause;
  if (cause == node::SlurmFailure::kNotInSlurm) {  // each source has other words for it
    failure.detail = "slurmctld has no node " + node_ + " in any partition";
  }
  record_failure(std::move(failure));
  if (cause == node::SlurmFailure::kNotInSlurm) {
    backoff_.reset();
    plan_tick(now);
    return;
  }
  plan_retry(cause, now);
}

// Starts what is due: a tick, a retry, or a question on evidence.
void ControllerPoll::start_due(Now now) {
  if (now.steady >= *due_) {
    if (leaves_tick_out(now.steady)) {
      tick_replaced_ = false;
      plan_tick(now);
    } else if (!postpones_tick(now) && now.steady >= open_at(now.steady)) {
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

void ControllerPoll::take_result(Now now) {
  auto result = source_->poll(now);
  if (!result) {
    return;
  }
  if (!asked_for_free_) {
    counters_.last_took = now.steady - asked_.value_or(now.steady);
  }
  if (asked_node_ == node_) {
    finish(now, *std::move(result));
  }
}

SteadyTime ControllerPoll::step(Now now) {
  stepped_ = now.steady;
  take_result(now);
  if (node_.empty()) {
    return source_->wake_at();
  }
  if (!due_) {
    due_ = now.steady +
           (source_->is_free() ? settings_.first_spread : until_place(now, settings_.first_spread));
  }
  if (!source_->busy() && source_->news(node_, now.wall) != News::kNone) {
    start(now, Query::kOneNode);
  } else if (!source_->busy() && now.steady >= confirmation_due(now.steady)) {
    confirm_at_.reset();
    confirmed_ = now.steady;
    start(now, Query::kFull);
  } else if (!source_->busy()) {
    start_due(now);
  }
  if (source_->busy() && source_->wake_at() <= now.steady) {
    take_result(now);  // a record is there at once
  }
  SteadyTime wake = source_->busy()
                        ? source_->wake_at()
                        : std::min(question_due(now.steady), confirmation_due(now.steady));
  if (answered_steady_ && now.steady <= stale_from()) {
    wake = std::min(wake, stale_from() + std::chrono::milliseconds{1});
  }
  wake_ = wake;
  return wake;
}

// What one dump said turns stale for all nodes at the same moment.
SteadyTime ControllerPoll::stale_from() const {
  const Duration spread = std::min(delay_rule(Delay::kStale).to, interval_ / 2);
  return *answered_steady_ + valid_for_.value_or(settings_.stale_after) +
         place_.in(spread, "stale:");
}

PollCounters ControllerPoll::counters() const {
  PollCounters counters = counters_;
  counters.source = source_->counters();
  counters.pace = settings_;
  counters.pace.interval = interval_;
  counters.questions_left = budget_.left(stepped_);
  if (answered_steady_) {
    counters.answer_lasts = stale_from() - *answered_steady_;
  }
  return counters;
}

node::SlurmAnswer ControllerPoll::answer(Now now) const {
  node::SlurmAnswer answer = answer_;
  answer.source = source_->name();
  answer.by_slurmrestd = source_->is_slurmrestd();
  answer.stale = answered_steady_ && now.steady > stale_from();
  return answer;
}

}  // namespace slurmlet::slurm
