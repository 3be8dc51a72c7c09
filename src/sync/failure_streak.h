#pragma once

// Calls that fail one after the other: why, since when, and when to try again.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/delay.h"
#include "base/log.h"
#include "base/result.h"

namespace slurmlet::sync {

class FailureStreak {
 public:
  FailureStreak(Delay cause, Random random) : backoff_(cause, std::move(random)) {}

  const std::optional<Error>& error() const { return error_; }
  SteadyTime since() const { return since_; }
  SteadyTime retry_at() const { return retry_at_; }
  void retry_by(SteadyTime time) { retry_at_ = std::min(retry_at_, time); }

  // `what` failed: "Node n1 not written".
  void failed(const std::string& what, const Error& error, SteadyTime now) {
    if (error.code == Code::kCancelled) {
      return;  // we are being stopped
    }
    if (!error_) {
      log::warning(what + ": " + error.message);
      since_ = now;
    }
    error_ = error;
    pause(error, now);
  }
  // Tries again later, without calling it a failure.
  void pause(const Error& error, SteadyTime now) {
    const bool permanent = error.code == Code::kDenied || error.code == Code::kInvalid;
    const Duration delay = backoff_.next(error.retry_after);
    retry_at_ = now + (permanent ? std::max<Duration>(delay, std::chrono::seconds{1}) : delay);
  }
  // Whether there was a failure before.
  bool ended() {
    backoff_.reset();
    return std::exchange(error_, std::nullopt).has_value();
  }

 private:
  Backoff backoff_;
  std::optional<Error> error_;
  SteadyTime since_{}, retry_at_{};
};

}  // namespace slurmlet::sync
