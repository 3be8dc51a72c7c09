#include "operator/machines/machine_calls.h"

#include <algorithm>

namespace slurmlet::op {

MachineCalls::MachineCalls(std::function<bool()> may_act, Random random)
    : may_act_(std::move(may_act)),
      // The first retry comes after the jobs known now have expired.
      backoff_(kJobsFresh, 2 * kJobsFresh, std::chrono::seconds{60}, std::move(random)),
      failed_(std::chrono::seconds{10}, std::chrono::minutes{1}) {}

void MachineCalls::begin_pass() {
  left_ = kCallsPerPass;
  failed_in_pass_ = false;
  next_pass_ = kNever;
}

bool MachineCalls::may_call(const std::string& key, SteadyTime now) {
  const SteadyTime pause = std::max(paused_until_, failed_.not_before(key));
  if (now < pause || --left_ < 0) {
    retry_at(std::max(pause, now + kNextCalls));
    return false;
  }
  return may_act_();
}

void MachineCalls::succeeded(const std::string& key) {
  failed_.forget(key);
  backoff_.reset();
}

void MachineCalls::failed(const std::string& key, const std::string& what, const Error& error,
                          SteadyTime now, bool of_all) {
  failed_in_pass_ = true;
  const SteadyTime again = now + backoff_.next(error.retry_after);
  if (of_all) {
    paused_until_ = again;
  }
  failed_.failed(key, now, again);  // only this call may hang, so others go first
  retry_at(again);
  if (problem_.empty()) {
    problem_ = what + ": " + error.message;
  }
}

}  // namespace slurmlet::op
