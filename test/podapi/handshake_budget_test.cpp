#include "podapi/handshake_budget.h"

#include <gtest/gtest.h>

namespace slurmlet::podapi {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyTime kStart{hours{1}};

HandshakeLimits limits() {
  HandshakeLimits out;
  out.per_second = 2;
  out.burst = 3;
  out.unknown_per_second = 4;
  out.unknown_burst = 5;
  out.max_addresses = 8;
  return out;
}

// How many of `count` handshakes may begin at once.
int granted(HandshakeBudget& budget, const std::string& host, int count, SteadyTime now) {
  int out = 0;
  for (int i = 0; i < count; ++i) {
    out += budget.take(host, now) <= now ? 1 : 0;
  }
  return out;
}

TEST(HandshakeBudgetTest, AnAddressGetsItsBurstAndThenItsRate) {
  HandshakeBudget budget{limits()};
  EXPECT_EQ(granted(budget, "a", 10, kStart), 3);
  EXPECT_EQ(budget.take("a", kStart), kStart + milliseconds{500});
  EXPECT_GT(budget.take("a", kStart + milliseconds{499}), kStart + milliseconds{499});
  EXPECT_EQ(granted(budget, "a", 10, kStart + milliseconds{510}), 1);
  EXPECT_EQ(granted(budget, "a", 10, kStart + hours{1}), 3) << "no more than the burst";
}

TEST(HandshakeBudgetTest, OneAddressLeavesTheOthersTheirs) {
  HandshakeBudget budget{limits()};
  EXPECT_EQ(granted(budget, "a", 1000, kStart), 3);
  EXPECT_EQ(granted(budget, "b", 1, kStart), 1);
}

TEST(HandshakeBudgetTest, UnknownAddressesShareALimit) {
  HandshakeBudget budget{limits()};
  int all = 0;
  for (int i = 0; i < 100; ++i) {
    all += granted(budget, std::to_string(i), 1, kStart);
  }
  EXPECT_EQ(all, 5);
  EXPECT_EQ(budget.take("new", kStart), kStart + milliseconds{250});
}

TEST(HandshakeBudgetTest, AnAddressThatWasLetThroughGetsInWhateverTheOthersDo) {
  HandshakeBudget budget{limits()};
  budget.know("friend", kStart);
  for (int i = 0; i < 100; ++i) {
    (void)budget.take(std::to_string(i), kStart);
  }
  EXPECT_EQ(granted(budget, "friend", 10, kStart), 3) << "its own limit stays";
}

TEST(HandshakeBudgetTest, WhoIsRefusedCostsTheOthersNothing) {
  HandshakeBudget budget{limits()};
  EXPECT_EQ(granted(budget, "a", 1000, kStart), 3);
  EXPECT_EQ(granted(budget, "b", 2, kStart), 2) << "three of five are used, not a thousand";
}

TEST(HandshakeBudgetTest, OfManyWhoAreKnownTheLatestAreAndThereIsRoomForOthers) {
  HandshakeBudget budget{limits()};
  for (int i = 0; i < 100; ++i) {
    budget.know("friend" + std::to_string(i), kStart + seconds{i});
  }
  const SteadyTime now = kStart + seconds{100};
  for (int i = 0; i < 1000; ++i) {
    (void)budget.take(std::to_string(i), now + milliseconds{i});
  }
  const SteadyTime then = now + milliseconds{999};
  int in = 0;
  for (int i = 0; i < 100; ++i) {
    in += budget.take("friend" + std::to_string(i), then) <= then ? 1 : 0;
  }
  // Half of the eight places; the unknown ones have used what there is.
  EXPECT_EQ(in, 4);
}

}  // namespace
}  // namespace slurmlet::podapi
