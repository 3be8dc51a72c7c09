#pragma once

// Asks slurmctld about this node, rarely, and remembers the last answer.
//
// The rate is what a site pays for slurmlet (two requests to slurmctld a question, times the number
// of nodes), so it has a hard bound:
// - the cadence is one question an interval, at a phase of the wall clock that is derived from the
//   node's name: a fleet that is started together spreads evenly over the interval;
// - the first question comes within `first_spread` of the start, at a delay derived from the name;
// - ask_soon() adds questions on local evidence (a job began, slurmd came back), at least `min_gap`
//   after the previous question and at most `extra_per_hour` an hour with bursts of `extra_burst`;
// - while slurmctld does not answer, questions back off exponentially with jitter up to
// max_backoff,
//   and evidence does not shorten that, except for causes on this machine (munge, slurm.conf,
//   sinfo). "Not in Slurm" is an answer of slurmctld: no back-off.
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
#include "slurm/command_runner.h"
#include "slurm/sinfo.h"

namespace slurmlet::slurm {

struct PollSettings {
  SinfoSettings sinfo;
  Duration interval = std::chrono::seconds{60};
  Duration first_spread = std::chrono::seconds{2};  // at most the interval is used
  Duration stale_after = std::chrono::seconds{300};
  Duration first_retry = std::chrono::seconds{10};
  Duration max_backoff = std::chrono::seconds{300};
  Duration min_gap = std::chrono::seconds{5};
  int extra_per_hour = 60;
  int extra_burst = 6;
};

struct PollCounters {
  std::uint64_t questions = 0;  // commands started
  std::uint64_t answers = 0;
  std::uint64_t failures = 0;
  std::map<node::SlurmFailure, std::uint64_t> failures_by_cause;
  Duration last_took{};
};

class ControllerPoll {
 public:
  // `node` is the Slurm NodeName; while it is "" nothing is asked.
  ControllerPoll(PollSettings settings, std::string node, std::unique_ptr<CommandRunner> runner,
                 Random random);

  // Another NodeName (learnt later): forgets the answer and asks at once.
  void set_node(const std::string& node);

  // Does what is due; returns when to come again, at the latest.
  SteadyTime step(Now now);
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

  // Something on this machine suggests that slurmctld's view has changed.
  void ask_soon(Now now);

  node::SlurmAnswer answer(Now now) const;
  const PollCounters& counters() const { return counters_; }

 private:
  void start(Now now);
  void finish(Now now, QueryResult result);
  void fail(Now now, QueryFailure failure);
  void refill(SteadyTime now);
  SteadyTime extra_due() const;
  SteadyTime next_tick(Now now) const;
  bool evidence_counts() const;

  PollSettings settings_;
  std::string node_;
  std::string asked_node_;  // whom the question under way is about
  std::unique_ptr<CommandRunner> runner_;
  Backoff backoff_;
  PollCounters counters_;
  node::SlurmAnswer answer_;
  std::optional<SteadyTime> answered_steady_;
  std::optional<SteadyTime> due_;    // the next question of the cadence; nothing before step()
  std::optional<SteadyTime> asked_;  // when the last question was started
  bool evidence_ = false;            // a question beyond the cadence is wanted
  double tokens_ = 0;                // questions beyond the cadence that are allowed
  std::optional<SteadyTime> refilled_;
};

}  // namespace slurmlet::slurm
