#pragma once

// When the API servers may be called for a Machine or a Node: few times in one look, since calls
// block, and again later where they fail. Not thread-safe.

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
  // `may_act` is asked before each call: one may take long, and the lead end meanwhile.
  MachineCalls(std::function<bool()> may_act, Random random);

  void begin_look();
  bool may_act() const { return may_act_(); }
  bool may_call(const std::string& key, SteadyTime now);
  void succeeded(const std::string& key);
  // `of_all`: the server may be away, so that others wait, too.
  void failed(const std::string& key, const std::string& what, const Error& error, SteadyTime now,
              bool of_all);
  void look_again(SteadyTime at) { next_look_ = std::min(next_look_, at); }
  SteadyTime next_look() const { return next_look_; }

  // Of this look.
  int left() const { return left_; }
  bool has_called() const { return left_ < kCallsPerLook; }
  bool has_failed() const { return failed_in_look_; }

  // Of keys that are wanted no more.
  template <class IsWanted>
  void retain(const IsWanted& is_wanted) {
    failed_.retain(is_wanted);
  }
  const std::string& problem() const { return problem_; }
  void clear_problem() { problem_.clear(); }

 private:
  static constexpr int kCallsPerLook = 5;

  std::function<bool()> may_act_;
  Backoff backoff_;
  KeyedBackoff failed_;
  int left_ = 0;
  bool failed_in_look_ = false;
  SteadyTime next_look_ = kNever, paused_until_{};
  std::string problem_;
};

inline constexpr Duration kNextCalls = std::chrono::milliseconds{100};

}  // namespace slurmlet::op
