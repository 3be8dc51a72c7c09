#pragma once

// Limits calls to the API servers for Machines and Nodes: a few per pass, since calls block, with
// back-off after failures. Not thread-safe.

#include <functional>
#include <string>
#include <utility>

#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "base/result.h"
#include "operator/machines/slurm_jobs.h"

namespace slurmlet::op {

class MachineCalls {
 public:
  // `may_act` is checked before each call, since the lead may end during a slow call.
  MachineCalls(std::function<bool()> may_act, Random random);

  void begin_pass();
  bool may_act() const { return may_act_(); }
  bool may_call(const std::string& key, SteadyTime now);
  void succeeded(const std::string& key);
  // `of_all`: the server itself may have failed, so all calls back off.
  void failed(const std::string& key, const std::string& what, const Error& error, SteadyTime now,
              bool of_all);
  void retry_at(SteadyTime at) { next_pass_ = std::min(next_pass_, at); }
  SteadyTime next_pass() const { return next_pass_; }

  // Of the current pass.
  int left() const { return left_; }
  bool has_called() const { return left_ < kCallsPerPass; }
  bool has_failed() const { return failed_in_pass_; }

  // Forgets keys that are not wanted any more.
  template <class IsWanted>
  void retain(const IsWanted& is_wanted) {
    failed_.retain(is_wanted);
  }
  const std::string& problem() const { return problem_; }
  void clear_problem() { problem_.clear(); }

 private:
  static constexpr int kCallsPerPass = 5;

  std::function<bool()> may_act_;
  Backoff backoff_;
  KeyedBackoff failed_;
  int left_ = 0;
  bool failed_in_pass_ = false;
  SteadyTime next_pass_ = kNever, paused_until_{};
  std::string problem_;
};

inline constexpr Duration kNextCalls = std::chrono::milliseconds{100};

}  // namespace slurmlet::op
