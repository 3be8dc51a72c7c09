#pragma once

// Asks slurmctld about this node, rarely, and remembers the last answer.
//
// The rate is what a site pays for slurmlet (two requests to slurmctld a question, times the number
// of nodes), so it has a hard bound: never more than `questions_per_hour` in any hour, whatever
// happens.
// - The cadence is one tick an interval, at a phase of the wall clock that is derived from the
//   node's name: a fleet that is started together spreads evenly over the interval. An interval
//   that the budget does not carry is stretched.
// - The first question comes within `first_spread` of the start, at a delay derived from the name.
// - ask_soon() asks on local evidence (a job began, slurmd came back), at least `min_gap` after the
//   previous question. Evidence in the last three quarters of an interval replaces its tick; other
//   evidence is paid from what the budget leaves beside the cadence (PollBudget).
// - Where the cadence alone would use the whole budget (60 s and 60 an hour), every second tick is
//   left out towards the end of a full hour, so that something is left for evidence.
// - While slurmctld does not answer, questions back off exponentially with full jitter up to
//   max_backoff, and evidence does not shorten that, except for causes on this machine (munge,
//   slurm.conf, sinfo). When slurmctld refuses for its rate limit the back-off begins higher.
//   "Not in Slurm" is an answer of slurmctld: no back-off.
// - A full query (want_confirmation()) counts as one question. It is made at the node's own phase
// of
//   confirm_interval, so that nodes that want one at the same moment spread over it.
// A source that costs slurmctld nothing (NodeSource::is_free(), a feed) is bound to none of this:
// it says itself when it is worth asking again.
//
// A step object: call step() when a descriptor of wake_fds() is readable or the returned time has
// come. Never blocks. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "node/facts.h"
#include "slurm/sources/node_source.h"
#include "slurm/sources/poll_budget.h"

namespace slurmlet::slurm {

struct PollSettings {
  Duration interval = std::chrono::seconds{60};
  Duration first_spread = std::chrono::seconds{2};  // at most the interval is used
  Duration stale_after = std::chrono::seconds{300};
  Duration first_retry = std::chrono::seconds{10};
  Duration max_backoff = std::chrono::seconds{300};
  Duration rate_limit_retry = std::chrono::seconds{30};  // at least, when slurmctld limits the rate
  Duration min_gap = std::chrono::seconds{5};
  int questions_per_hour = 60;                           // at most, in any hour
  Duration confirm_interval = std::chrono::minutes{10};  // between two full queries, at least
};

struct PollCounters {
  std::uint64_t questions = 0;  // begun
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
  std::map<node::SlurmFailure, std::uint64_t> failures_by_cause;
  std::optional<Duration> last_took;  // of the last question; nothing before its end
  int questions_left = 0;             // in the hour that ends now
  SourceCounters source;
};

class ControllerPoll {
 public:
  // `node` is the Slurm NodeName; while it is "" nothing is asked.
  ControllerPoll(const PollSettings& settings, std::string node, std::unique_ptr<NodeSource> source,
                 const Random& random);

  // Another NodeName (learnt later): forgets the answer and asks at once.
  void set_node(const std::string& node);
  // Nobody can be asked about, for this cause, until the next set_node(): which NodeName this
  // machine has cannot be told. Counted as one failure.
  void set_standing_failure(const QueryFailure& failure);

  void set_place(const ClusterPlace& place) {
    cluster_ = place.cluster;
    source_->set_place(place);
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
  void finish(Now now, QueryResult result);
  std::optional<QueryFailure> other_cluster(const QueryResult& result) const;
  void fail(Now now, QueryFailure failure);
  void record_failure(QueryFailure failure);
  void forget();
  void plan_tick(Now now);
  void follow(SteadyTime now, std::optional<Duration> next_in);
  Duration retry_delay(node::SlurmFailure cause, SteadyTime now);
  SteadyTime evidence_due(SteadyTime now) const;
  SteadyTime question_due(SteadyTime now) const;
  SteadyTime open_at(SteadyTime now) const;
  std::optional<SteadyTime> replaces_tick_from(SteadyTime now) const;
  bool leaves_tick_out(SteadyTime now) const;
  bool lasts(SteadyTime answered) const;
  bool evidence_counts() const;

  PollSettings settings_;
  PollBudget budget_;
  Duration interval_;  // of the cadence: settings_.interval, or what the budget carries
  std::string node_;
  std::string cluster_;     // "" while it is not known
  std::string asked_node_;  // whom the question under way is about
  std::unique_ptr<NodeSource> source_;
  Backoff backoff_;
  Backoff rate_backoff_;
  PollCounters counters_;
  node::SlurmAnswer answer_;
  std::optional<SteadyTime> answered_steady_;
  std::optional<SteadyTime> due_;    // the next question but for evidence; nothing before step()
  bool due_is_tick_ = false;         // of the cadence; else the first question or a retry
  bool tick_replaced_ = false;       // the coming tick's question was asked early, on evidence
  std::optional<SteadyTime> asked_;  // when the last question was started
  bool asked_for_free_ = false;      // the last question was begun as one that costs nothing
  bool evidence_ = false;            // a question before the next tick is wanted
  std::optional<SteadyTime> confirm_at_;  // a full query is wanted
  std::optional<SteadyTime> confirmed_;   // when the last one was started
  SteadyTime stepped_{};
};

}  // namespace slurmlet::slurm
