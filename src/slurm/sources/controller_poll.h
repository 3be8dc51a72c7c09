#pragma once

// Asks slurmctld about this node, rarely, and remembers the last answer. When (docs/slurm-load.md):
// - Never more than `questions_per_hour` in any hour, whatever happens: the rate, times the number
//   of nodes, is what a site pays for slurmlet. A full query counts as one question.
// - Evidence (ask_soon()) comes at least `min_gap` after the previous question; in the last three
//   quarters of an interval it replaces its tick, else it is paid from what the budget leaves
//   beside the cadence (PollBudget).
// - Where the cadence alone would use the whole budget (60 s and 60 an hour), every second tick is
//   left out towards the end of a full hour, so that something is left for evidence.
// - Evidence shortens no back-off but for causes on this machine. When slurmctld refuses for its
//   rate limit the back-off begins higher. "Not in Slurm" is an answer of slurmctld: no back-off.
// A source that costs slurmctld nothing (NodeSource::is_free(), slurmlet-operator's records) is
// bound to none of this: it is asked when it has news, or when it says itself. Where it fails and
// another takes its place, that is asked at the node's own time within an interval, and what the
// free one said last counts until then.
//
// A step object: call step() when a descriptor of wake_fds() is readable or the returned time has
// come. Never blocks. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "node/facts.h"
#include "slurm/sources/node_source.h"
#include "slurm/sources/poll_budget.h"
#include "slurm/sources/poll_pace.h"

namespace slurmlet::slurm {

struct PollCounters {
  std::uint64_t questions = 0;  // begun, but for free ones; likewise the answers
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
  std::map<node::SlurmFailure, std::uint64_t> failures_by_cause;
  std::optional<Duration> last_took;     // of the last question; nothing before its end
  int questions_left = 0;                // in the hour that ends now
  std::optional<Duration> answer_lasts;  // how old the last answer may become
  SourceCounters source;
  PollSettings pace;  // what the settings came to
};

class ControllerPoll {
 public:
  // `node` is the Slurm NodeName; while it is "" nothing is asked.
  ControllerPoll(const PollSettings& settings, std::string node, std::unique_ptr<NodeSource> source,
                 const Random& random);

  // As slurm.conf, read again, has another number of nodes. What was asked in this hour counts on.
  void set_pace(const PollSettings& pace);
  const PollSettings& pace() const { return settings_; }

  // Another NodeName (learnt later): forgets the answer and asks as at the start.
  void set_node(const std::string& node) { set_node(node, SitePlace{node}); }
  void set_node(const std::string& node, const SitePlace& place);
  // Nobody can be asked about, for this cause, until the next set_node(): which NodeName this
  // machine has cannot be told. Counted as one failure.
  void set_standing_failure(const QueryFailure& failure);

  void set_place(const ClusterPlace& place) {
    cluster_ = place.cluster;
    source_->set_place(place);
  }

  // As NodeSource::set_record(): to be followed by a step at once where it returns true.
  bool set_record(const std::optional<std::string>& annotation) {
    return source_->set_record(annotation);
  }

  // Does what is due; returns when to come again, at the latest.
  SteadyTime step(Now now);
  std::vector<int> wake_fds() const { return source_->wake_fds(); }

  // Something on this machine suggests that slurmctld's view has changed.
  void ask_soon(Now now);
  // Whether a full query would tell more than the answers do. While it would, one is made at this
  // node's phase of each confirm_interval; returns when to come again for it.
  SteadyTime want_confirmation(bool wanted, Now now);

  node::SlurmAnswer answer(Now now) const;
  PollCounters counters() const;

 private:
  void start(Now now, Query query);
  SteadyTime confirmation_due(SteadyTime now) const;
  void start_due(Now now);
  void take_result(Now now);
  void finish(Now now, QueryResult result);
  void fall_back(Now now, QueryFailure failure);
  bool is_older(WallTime as_of, Now now) const;
  std::optional<QueryFailure> other_cluster(const QueryResult& result) const;
  void fail(Now now, QueryFailure failure);
  void record_failure(QueryFailure failure);
  void forget();
  void plan_tick(Now now);
  void follow(SteadyTime now, std::optional<Duration> next_in);
  void plan_retry(node::SlurmFailure cause, Now now);
  Backoff query_backoff() const;
  Backoff rate_backoff() const;
  Duration until_place(Now now, Duration spread) const;
  SteadyTime stale_from() const;
  SteadyTime evidence_due(SteadyTime now) const;
  SteadyTime question_due(SteadyTime now) const;
  SteadyTime open_at(SteadyTime now) const {
    return source_->is_free() ? now : budget_.open_at(now);
  }
  std::optional<SteadyTime> replaces_tick_from(SteadyTime now) const;
  bool leaves_tick_out(SteadyTime now) const;
  Duration spare(SteadyTime answered, SteadyTime due) const;
  bool lasts(SteadyTime answered) const;
  bool postpones_tick(Now now);
  bool evidence_counts() const;

  PollSettings settings_;
  PollBudget budget_;
  Duration interval_;  // of the cadence: settings_.interval, or what the budget carries
  std::string node_;
  SitePlace place_;
  std::string cluster_;     // "" while it is not known
  std::string asked_node_;  // whom the question under way is about
  std::unique_ptr<NodeSource> source_;
  Random random_;
  Backoff backoff_;
  Backoff rate_backoff_;
  PollCounters counters_;
  node::SlurmAnswer answer_;
  std::optional<SteadyTime> answered_steady_;
  std::optional<SteadyTime> due_;      // the next question but for evidence; nothing before step()
  bool due_is_tick_ = false;           // of the cadence; else the first question or a retry
  bool postponed_ = false;             // the coming tick was
  bool tick_replaced_ = false;         // the coming tick's question was asked early, on evidence
  std::optional<SteadyTime> asked_;    // when the last question was started
  bool asked_for_free_ = false;        // the last question was one that costs nothing
  bool answered_for_free_ = false;     // likewise the answer
  std::optional<Duration> valid_for_;  // the answer, where its source says so
  bool evidence_ = false;              // a question before the next tick is wanted
  SteadyTime evidence_from_{};         // not sooner than this
  std::optional<SteadyTime> confirm_at_;  // a full query is wanted
  std::optional<SteadyTime> confirmed_;   // when the last one was started
  SteadyTime stepped_{};
  SteadyTime wake_ = kNever;  // when step() was to be called again
};

}  // namespace slurmlet::slurm
