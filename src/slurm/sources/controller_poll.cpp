#include "slurm/sources/controller_poll.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/slurm_failure.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr const char* kOperator = "slurmlet-operator";
constexpr const char* kScontrol = "scontrol";

constexpr Duration kMinGap = std::chrono::seconds{15};
// Clocks of two hosts agree to within this.
constexpr Duration kClocks = std::chrono::minutes{1};

TokenBucket evidence_bucket(const PollSettings& settings) {
  constexpr double kBurst = 4;
  const double seconds = std::chrono::duration<double>(settings.interval).count();
  return TokenBucket{{0.25 / std::max(seconds, 0.1), kBurst}};
}

Backoff query_backoff(const PollSettings& settings, const Random& random) {
  const DelayRule& rule = delay_rule(Delay::kQueryRetry);
  const Duration first = std::min(std::max(rule.to, settings.spread), settings.max_backoff);
  return {first / 3, first, settings.max_backoff, random};
}

}  // namespace

ControllerPoll::ControllerPoll(const PollSettings& settings, PollSources sources, Random random)
    : settings_(settings),
      sources_(std::move(sources)),
      random_(std::move(random)),
      backoff_(query_backoff(settings_, random_)),
      evidence_(evidence_bucket(settings_)) {
  answer_.source = sources_.query ? kScontrol : kOperator;
  forget();
}

void ControllerPoll::set_pace(const PollSettings& pace) {
  if (pace == settings_) {
    return;
  }
  if (pace.too_many.empty() != settings_.too_many.empty()) {
    due_.reset();
    judge_at_ = sources_.record ? SteadyTime{} : kNever;
  }
  settings_ = pace;
  if (sources_.query) {
    log::info("slurmctld is queried " + pace_text(pace));
  }
  backoff_ = query_backoff(settings_, random_);
  evidence_ = evidence_bucket(settings_);
}

void ControllerPoll::set_node(const std::string& node, const SitePlace& place) {
  place_ = place;
  if (node != node_ || node.empty()) {
    node_ = node;
    forget();
  }
}

void ControllerPoll::set_standing_failure(const QueryFailure& failure) {
  if (!node_.empty() || answer_.failure != failure.cause ||
      answer_.failure_detail != failure.detail) {
    node_.clear();
    forget();
    fail(failure);
  }
}

void ControllerPoll::set_place(const ClusterPlace& place) {
  if (sources_.record) {
    sources_.record->set_cluster(place.cluster);
    judge_at_ = {};
  }
  if (sources_.query) {
    sources_.query->set_place(place);
  }
}

bool ControllerPoll::set_record(const std::optional<std::string>& annotation) {
  const bool is_new = sources_.record && sources_.record->set_record(annotation);
  judge_at_ = is_new ? SteadyTime{} : judge_at_;
  return is_new;
}

void ControllerPoll::forget() {
  answer_ = {.record = {},
             .answered_at = {},
             .failure = {},
             .failure_detail = {},
             .source = std::move(answer_.source)};
  stale_at_.reset();
  due_.reset();
  evidence_from_.reset();
  judge_at_ = sources_.record ? SteadyTime{} : kNever;
  backoff_.reset();
}

void ControllerPoll::use(const std::string& source, const std::string& why) {
  if (source != answer_.source) {
    why.empty() ? log::info("uses " + source)
                : log::warning("uses " + source + " instead of " + answer_.source + ": " + why);
    answer_.source = source;
  }
}

void ControllerPoll::fail(QueryFailure failure) {
  ++counters_.failures;
  ++counters_.failures_by_cause[failure.cause];
  if (failure.cause == SlurmFailure::kNotInSlurm) {
    stale_at_ = SteadyTime{};  // it is an answer: an earlier one holds no longer
  }
  answer_.failure = failure.cause;
  answer_.failure_detail = std::move(failure.detail);
}

void ControllerPoll::take(QueryResult result, Now now) {
  const WallTime as_of = result.as_of.value_or(now.wall);
  // What one dump said turns stale for all nodes at the same moment.
  const Duration spread = std::min(delay_rule(Delay::kStale).to, settings_.interval / 2);
  const Duration lasts =
      result.valid_for.value_or(settings_.stale_after) + place_.in(spread, "stale:");
  answer_.record = std::move(result.record);
  answer_.answered_at = as_of;
  counters_.answer_lasts = lasts;
  stale_at_ = now.steady - std::max<Duration>(now.wall - as_of, Duration::zero()) + lasts;
}

// A record must not override a newer answer of our own. The clocks of two hosts made the times.
bool ControllerPoll::has_newer(const QueryResult& result, Now now) const {
  const bool is_stale = stale_at_ && now.steady > *stale_at_;
  if (!result.as_of || !answer_.record || answer_.source != kScontrol || is_stale) {
    return false;
  }
  const WallTime own = *answer_.answered_at;
  const Duration age = now.wall - own;  // negative where the clock was set
  // The operator writes whole seconds.
  return *result.as_of + std::chrono::seconds{1} < own && age >= Duration::zero() &&
         (age < kClocks || *result.as_of + kClocks < own);
}

void ControllerPoll::judge_record(Now now) {
  QueryResult result = sources_.record->judge(node_, now.wall);
  const Duration next = result.next_in.value_or(settings_.interval);
  judge_at_ = sources_.record->has_record()
                  ? now.steady + std::max<Duration>(next, std::chrono::milliseconds{100})
                  : kNever;
  if (result.failure && result.failure->cause == SlurmFailure::kRecordUnavailable) {
    lose_record(now, *std::move(result.failure));
    return;
  }
  due_ = kNever;
  evidence_from_.reset();
  backoff_.reset();
  if (result.failure) {
    use(kOperator, "");
    fail(*std::move(result.failure));
    return;
  }
  if (!has_newer(result, now)) {
    use(kOperator, "");
    take(std::move(result), now);
  } else {
    // Nobody queries meanwhile: the record counts once our answer is stale.
    judge_at_ = std::min({judge_at_, now.steady + kClocks,
                          stale_at_.value_or(kNever) + std::chrono::milliseconds{1}});
  }
  answer_.failure.reset();
  answer_.failure_detail.clear();
}

// It may have failed for all nodes at once, so each queries slurmctld at its own time. What it said
// last counts until then.
void ControllerPoll::lose_record(Now now, QueryFailure failure) {
  const bool is_used = answer_.source == kOperator;
  // In use, or valid beside a newer answer of our own.
  const bool was_valid = never_queries() && (is_used || !answer_.failure);
  const bool is_new_failure =
      answer_.failure != failure.cause || answer_.failure_detail != failure.detail;
  if (sources_.query && was_valid) {
    due_ = now.steady + place_.until_own_time(settings_.interval, "interval:", now.wall);
  }
  const bool is_final = !sources_.query && sources_.record->is_known();
  if (is_new_failure && ((was_valid && is_used) || is_final)) {
    fail(std::move(failure));
  }
  if (is_final) {
    due_ = kNever;
  }
}

// Nodes that something made query at one moment are even again after ten intervals at most.
void ControllerPoll::plan_next(Now now) {
  const Duration late =
      settings_.interval - place_.until_own_time(settings_.interval, "interval:", now.wall);
  due_ = now.steady + settings_.interval - std::min(late, settings_.interval / 10);
}

void ControllerPoll::query(Now now) {
  evidence_from_.reset();
  queried_ = now.steady;
  queried_node_ = node_;
  if (!sources_.query) {
    fail(sources_.record->judge(node_, now.wall).failure.value_or(QueryFailure{}));
    due_ = kNever;
    return;
  }
  std::string lost;  // why there is no record
  if (sources_.record && sources_.record->has_record()) {
    lost = sources_.record->judge(node_, now.wall).failure.value_or(QueryFailure{}).detail;
  }
  use(kScontrol, lost);
  if (!settings_.too_many.empty()) {
    fail({SlurmFailure::kOperatorRequired, settings_.too_many + (lost.empty() ? "" : "; ") + lost});
    due_ = kNever;
  } else if (!valid_node_name(node_)) {
    fail({SlurmFailure::kBadConfiguration,
          "'" + node_ + "' is not a Slurm node name; set slurm.nodeName to the name of one node"});
    due_ = kNever;
  } else if (auto failure = sources_.query->query(node_, now)) {
    fail(*std::move(failure));
    due_ = now.steady + backoff_.next();
  } else {
    ++counters_.queries;
  }
}

void ControllerPoll::take_result(Now now) {
  auto result = is_busy() ? sources_.query->poll(now) : std::nullopt;
  if (!result) {
    return;
  }
  counters_.last_took = now.steady - queried_;
  if (queried_node_ != node_ || never_queries()) {
    return;  // a record has come meanwhile
  }
  if (!result->failure) {
    ++counters_.answers;
    take(*std::move(result), now);
    answer_.failure.reset();
    answer_.failure_detail.clear();
  } else {
    const bool answered = result->failure->cause == SlurmFailure::kNotInSlurm;
    fail(*std::move(result->failure));
    if (!answered) {
      due_ = now.steady + backoff_.next();
      return;
    }
  }
  backoff_.reset();
  plan_next(now);
}

void ControllerPoll::request_poll(Now now) {
  if (due_ && !never_queries() && !evidence_from_) {
    evidence_from_ = now.steady + place_.in(settings_.spread, "evidence:");
  }
}

// Evidence shortens no back-off but for causes on this machine, and there is nothing to hurry
// before the first query.
SteadyTime ControllerPoll::query_due(SteadyTime now) const {
  const bool counts = !answer_.failure || node::kind_of(*answer_.failure).has(node::kEndsHere);
  if (!evidence_from_ || !counts || queried_ == SteadyTime{} || never_queries()) {
    return *due_;
  }
  return std::min(*due_, std::max({*evidence_from_, queried_ + kMinGap, evidence_.ready(now)}));
}

SteadyTime ControllerPoll::step(Now now) {
  take_result(now);
  if (node_.empty()) {
    return is_busy() ? sources_.query->wake_at() : kNever;
  }
  if (now.steady >= judge_at_) {
    judge_record(now);
  }
  if (!due_) {
    due_ = now.steady + place_.in(settings_.spread, "first:");
  }
  if (!is_busy() && now.steady >= query_due(now.steady)) {
    if (now.steady < *due_) {
      (void)evidence_.take(now.steady);
    }
    query(now);
  }
  SteadyTime wake = is_busy() ? sources_.query->wake_at() : query_due(now.steady);
  if (stale_at_ && now.steady <= *stale_at_) {
    wake = std::min(wake, *stale_at_ + std::chrono::milliseconds{1});
  }
  return std::min(wake, judge_at_);
}

std::vector<int> ControllerPoll::wake_fds() const {
  return sources_.query ? sources_.query->wake_fds() : std::vector<int>{};
}

PollCounters ControllerPoll::counters() const {
  PollCounters counters = counters_;
  counters.pace = settings_;
  return counters;
}

node::SlurmAnswer ControllerPoll::answer(Now now) const {
  node::SlurmAnswer answer = answer_;
  answer.stale = stale_at_ && now.steady > *stale_at_;
  return answer;
}

}  // namespace slurmlet::slurm
