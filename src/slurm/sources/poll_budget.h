#pragma once

// How many questions to slurmctld one node may ask: at most `per_hour` in any hour (exactly: the
// start of every question of the last hour is remembered), and how much of that is for questions
// beside the cadence. Those are paid with tokens, so that a burst of evidence early in an hour does
// not leave the rest of it without answers.
//
// Pure but for its memory. Not thread-safe.

#include <deque>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace slurmlet::slurm {

class PollBudget {
 public:
  // `interval` is that of the cadence, at least an hour / per_hour.
  PollBudget(int per_hour, Duration interval);

  // Another rate from now on; the questions of the last hour still count.
  void change(int per_hour, Duration interval);

  // When the next question may start as far as the hour is concerned; not before `now`.
  SteadyTime open_at(SteadyTime now) const;
  // A question starts.
  void spend(SteadyTime now);
  int left(SteadyTime now) const;

  // The cadence has to make room for evidence: so much of the hour is used.
  bool is_scarce(SteadyTime now) const;

  // When there is a token for a question beside the cadence; not before `now`.
  SteadyTime token_at(SteadyTime now) const { return tokens_.ready(now); }
  // Takes one; false when there is none.
  bool take_token(SteadyTime now) { return tokens_.take(now); }

 private:
  int used(SteadyTime now) const;

  int per_hour_;
  int scarce_from_;  // questions in the last hour; per_hour_ + 1 = never
  std::deque<SteadyTime> starts_;
  // The extra questions of an hour are at most its burst and what an hour brings.
  TokenBucket tokens_;
};

}  // namespace slurmlet::slurm
