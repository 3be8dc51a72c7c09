#pragma once

// What slurmctld says of this node, and when it is queried (docs/explanation/slurm-state.md):
// 1. While the operator's record is valid, no daemon queries slurmctld; the record is judged when
//    it changes and when it would expire.
// 2. Else slurmctld is queried once an interval, which grows with the site (poll_pace.h).
// 3. Evidence of a change on this machine (request_poll()) brings a query forward, at least 15 s
//    after the last one and once in four intervals in the long run.
// 4. Failures back off. "Not in Slurm" is an answer of slurmctld.
// What comes sooner than the interval has it is spread over the site by the node's name.
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
#include "base/token_bucket.h"
#include "node/facts.h"
#include "slurm/sources/node_source.h"
#include "slurm/sources/poll_pace.h"
#include "slurm/sources/record_source.h"

namespace slurmlet::slurm {

struct PollCounters {
  std::uint64_t queries = 0;  // of slurmctld, begun
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
  std::map<node::SlurmFailure, std::uint64_t> failures_by_cause;
  std::optional<Duration> last_took;     // of the last query; nothing before its end
  std::optional<Duration> answer_lasts;  // how old the last answer may become
  PollSettings pace;                     // what the settings came to
};

// slurm.source: one of the two, or both.
struct PollSources {
  std::optional<RecordSource> record;
  std::unique_ptr<NodeSource> query;
};

class ControllerPoll {
 public:
  ControllerPoll(const PollSettings& settings, PollSources sources, Random random);

  // As slurm.conf, read again, has another number of nodes.
  void set_pace(const PollSettings& pace);
  const PollSettings& pace() const { return settings_; }

  // While the NodeName is "" nothing is queried. Another one forgets the answer.
  void set_node(const std::string& node, const SitePlace& place);
  // There is no node to query about, for this cause, until the next set_node(): which NodeName this
  // machine has cannot be determined. Counted as one failure.
  void set_standing_failure(const QueryFailure& failure);
  void set_place(const ClusterPlace& place);

  // The annotation slurmlet.io/record of the own Node; "" = it has none, nothing = the Node is not
  // known. To be followed by a step at once where it returns true.
  bool set_record(const std::optional<std::string>& annotation);

  // Does what is due; returns when to come again, at the latest.
  SteadyTime step(Now now);
  std::vector<int> wake_fds() const;

  // Something on this machine suggests that slurmctld's view has changed.
  void request_poll(Now now);

  node::SlurmAnswer answer(Now now) const;
  PollCounters counters() const;

 private:
  bool is_busy() const { return sources_.query && sources_.query->busy(); }
  // The record is in use, or the site is too large to query for itself.
  bool never_queries() const { return due_ == kNever; }
  void judge_record(Now now);
  void lose_record(Now now, QueryFailure failure);
  bool has_newer(const QueryResult& result, Now now) const;
  void query(Now now);
  void take_result(Now now);
  void take(QueryResult result, Now now);
  void fail(QueryFailure failure);
  void forget();
  void use(const std::string& source, const std::string& why);
  void plan_next(Now now);
  SteadyTime query_due(SteadyTime now) const;

  PollSettings settings_;
  PollSources sources_;
  Random random_;
  std::string node_, queried_node_;  // queried_node_: of the query under way
  SitePlace place_;
  Backoff backoff_;
  TokenBucket evidence_;
  PollCounters counters_;
  node::SlurmAnswer answer_;
  std::optional<SteadyTime> stale_at_;       // of the record in answer_
  std::optional<SteadyTime> due_;            // the next query; nothing before the first step
  std::optional<SteadyTime> evidence_from_;  // a sooner query is wanted, from then on
  SteadyTime judge_at_ = kNever;             // the record
  SteadyTime queried_{};                     // when the last query began
};

}  // namespace slurmlet::slurm
