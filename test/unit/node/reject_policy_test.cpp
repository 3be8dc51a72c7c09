#include "node/reject_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slurmlet::node {
namespace reject_policy_test {

using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr SteadyTime kStart{hours{1}};

TEST(RejectPolicyTest, TenReplicasThatArriveTogetherAreFailedTogether) {
  RejectPolicy policy{seconds{60}};
  for (int i = 0; i < 10; ++i) {
    const SteadyTime now = kStart + milliseconds{90 * i};
    EXPECT_EQ(policy.due("rs", now), now) << i;
  }
  EXPECT_EQ(policy.rounds("rs"), 0);
  EXPECT_EQ(policy.rounds("nobody"), 0);
}

TEST(RejectPolicyTest, PodsWithoutAControllerNeverWait) {
  RejectPolicy policy{seconds{60}};
  for (int i = 0; i < 1000; ++i) {
    const SteadyTime now = kStart + seconds{2 * i};
    EXPECT_EQ(policy.due("", now), now);
  }
  EXPECT_EQ(policy.owners(), 0U);
}

// A ReplicaSet that brings `replicas` new pods 10 ms after its last ones were failed; the delays of
// its rounds.
std::vector<int> hot_loop_delays(RejectPolicy& policy, int replicas, std::size_t count) {
  std::vector<int> delays;
  SteadyTime now = kStart;
  int last_round = -1;
  while (delays.size() < count) {
    SteadyTime due{};
    for (int i = 0; i < replicas; ++i) {
      due = policy.due("rs", now);
    }
    if (policy.rounds("rs") != last_round) {
      last_round = policy.rounds("rs");
      delays.push_back(static_cast<int>(duration_cast<seconds>(due - now).count()));
    }
    now = due + milliseconds{10};
  }
  return delays;
}

TEST(RejectPolicyTest, AHotLoopWaitsEverLonger) {
  for (const int replicas : {1, 10, 100}) {
    RejectPolicy policy{seconds{60}};
    const std::vector<int> delays = hot_loop_delays(policy, replicas, 11);
    // A hundred at once fill more than a round: what is left belongs to the ones after it.
    if (replicas < 100) {
      EXPECT_EQ(delays, (std::vector<int>{0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60})) << replicas;
    }
    EXPECT_EQ(delays.back(), 60) << replicas;
    EXPECT_EQ(policy.owners(), 1U);
    const SteadyTime later = kStart + hours{1};
    EXPECT_EQ(policy.due("other", later), later) << "owners do not share their delays";
  }
  RejectPolicy short_cap{seconds{3}};
  EXPECT_EQ(hot_loop_delays(short_cap, 1, 40).back(), 3);
}

TEST(RejectPolicyTest, AllPodsOfAWaitingRoundAreDueTogether) {
  RejectPolicy policy{seconds{60}};
  SteadyTime now = kStart;
  for (int round = 0; round < 4; ++round, now += seconds{5}) {
    (void)policy.due("rs", now);
  }
  const SteadyTime due = policy.due("rs", now);
  EXPECT_EQ(due, now + seconds{4});
  EXPECT_EQ(policy.due("rs", now + seconds{3}), due);
}

TEST(RejectPolicyTest, ForgetsWhoStaysAwayForTenCapsAndTenMinutesAtLeast) {
  for (const auto& [cap, remembered] :
       {std::pair{seconds{120}, minutes{20}}, std::pair{seconds{1}, minutes{10}}}) {
    RejectPolicy policy{cap};
    (void)policy.due("old", kStart);
    (void)policy.due("new", kStart + minutes{5});
    policy.forget_idle(kStart + remembered);
    EXPECT_EQ(policy.owners(), 2U);
    policy.forget_idle(kStart + remembered + seconds{1});
    EXPECT_EQ(policy.owners(), 1U);
    const SteadyTime back = kStart + remembered + minutes{1};
    EXPECT_EQ(policy.due("old", back), back);
    EXPECT_EQ(policy.rounds("old"), 0);
  }
}

TEST(RejectPolicyTest, TheNumberOfOwnersIsBounded) {
  RejectPolicy policy{seconds{60}};
  SteadyTime now = kStart;
  for (int i = 0; i < 3000; ++i) {
    now += milliseconds{10};
    (void)policy.due("forged-" + std::to_string(i), now);
    (void)policy.due("rs", now);
  }
  EXPECT_LT(policy.owners(), 2000U);
  EXPECT_GT(policy.rounds("rs"), 0) << "it was seen a moment ago";
}

}  // namespace reject_policy_test
}  // namespace slurmlet::node
