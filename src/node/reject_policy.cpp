#include "node/reject_policy.h"

#include <algorithm>

namespace slurmlet::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kRoundLength = seconds{1};
constexpr std::size_t kMostOwners = 1024;
constexpr int kPodsPerRound = 32;  // a controller cannot hide a hot loop inside one round

// Rounds 0 and 1 are free: a DaemonSet's or a Deployment's first retry is no loop yet.
Duration delay_of(int round, Duration cap) {
  if (round < 2) {
    return Duration{0};
  }
  return std::min<Duration>(cap, seconds{1} * (std::int64_t{1} << std::min(round - 2, 20)));
}

}  // namespace

SteadyTime RejectPolicy::due(const std::string& owner, SteadyTime now) {
  if (owner.empty()) {
    return now;
  }
  if (owners_.size() >= kMostOwners && !owners_.contains(owner)) {
    owners_.erase(std::min_element(
        owners_.begin(), owners_.end(),
        [](const auto& a, const auto& b) { return a.second.last_seen < b.second.last_seen; }));
  }
  const auto [entry, fresh] = owners_.try_emplace(owner);
  Owner& state = entry->second;
  state.last_seen = now;
  if (fresh) {
    state.round_start = now;
    state.due = now;
    state.pods_in_round = 1;
    return now;
  }
  const bool same_round = now < state.due || (now - state.round_start < kRoundLength &&
                                              state.pods_in_round < kPodsPerRound);
  if (!same_round) {
    ++state.rounds;
    state.round_start = now;
    state.due = now + delay_of(state.rounds, max_delay_);
    state.pods_in_round = 0;
  }
  ++state.pods_in_round;
  return std::max(now, state.due);
}

int RejectPolicy::rounds(const std::string& owner) const {
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.rounds;
}

void RejectPolicy::forget_idle(SteadyTime now) {
  const Duration limit = std::max<Duration>(minutes{10}, 10 * max_delay_);
  std::erase_if(owners_, [&](const auto& entry) { return now - entry.second.last_seen > limit; });
}

}  // namespace slurmlet::node
