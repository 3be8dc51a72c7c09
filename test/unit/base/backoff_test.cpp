#include "base/delay.h"

#include <gtest/gtest.h>

#include <vector>

#include "fakes/fixed_random.h"

namespace slurmlet {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Those who keep failing come less often, and yet never together.
TEST(BackoffTest, TheLowerBoundDoublesUpToHalfTheCap) {
  Backoff backoff{milliseconds{200}, milliseconds{300}, seconds{3}, fakes::fixed_random(0.0)};
  const std::vector<int> wanted_ms{200, 400, 800, 1500, 1500, 1500};
  for (const int ms : wanted_ms) {
    EXPECT_EQ(backoff.next(), milliseconds{ms});
  }
}

TEST(BackoffTest, WhereTheUpperBoundDoesNotDoubleNeitherDoesTheLower) {
  Backoff backoff{seconds{2}, seconds{3}, {}, fakes::fixed_random(0.0)};
  EXPECT_EQ(backoff.next(), seconds{2});
  EXPECT_EQ(backoff.next(), seconds{2});
}

TEST(BackoffTest, TheUpperBoundDoublesUpToTheCap) {
  Backoff backoff{milliseconds{100}, milliseconds{200}, seconds{7}, fakes::fixed_random(1.0)};
  const std::vector<int> wanted_ms{200, 400, 800, 1600, 3200, 6400, 7000, 7000, 7000};
  for (const int ms : wanted_ms) {
    EXPECT_EQ(backoff.next(), milliseconds{ms});
  }
}

TEST(BackoffTest, EveryDelayIsWithinItsBounds) {
  Backoff backoff{milliseconds{100}, milliseconds{200}, seconds{5}, system_random()};
  for (int i = 0; i < 200; ++i) {
    const Duration delay = backoff.next();
    EXPECT_GE(delay, milliseconds{100});
    EXPECT_LE(delay, seconds{5});
  }
}

TEST(BackoffTest, ResetStartsAgain) {
  Backoff backoff{milliseconds{100}, seconds{1}, seconds{60}, fakes::fixed_random(1.0)};
  EXPECT_EQ(backoff.failures(), 0);
  (void)backoff.next();
  (void)backoff.next();
  EXPECT_EQ(backoff.failures(), 2);
  backoff.reset();
  EXPECT_EQ(backoff.failures(), 0);
  EXPECT_EQ(backoff.next(), seconds{1});
}

// 60 s doubled thirty times does not fit into a Duration.
TEST(BackoffTest, ManyFailuresOfALongDelayStayAtTheCap) {
  for (const Duration cap : {Duration{minutes{5}}, Duration{hours{24}}}) {
    Backoff backoff{seconds{1}, minutes{1}, cap, fakes::fixed_random(1.0)};
    for (int i = 0; i < 100; ++i) {
      EXPECT_LE(backoff.next(), cap);
    }
    EXPECT_EQ(backoff.next(), cap);
  }
}

TEST(BackoffTest, APauseThatIsAskedForIsKeptSpreadAndBounded) {
  const struct {
    std::optional<Duration> asked;
    double random;
    Duration pause;
  } kRows[] = {
      {std::nullopt, 0.5, Duration::zero()}, {seconds{0}, 0.5, Duration::zero()},
      {-seconds{5}, 0.5, Duration::zero()},  {seconds{8}, 0.0, seconds{8}},
      {seconds{8}, 0.5, seconds{9}},         {seconds{8}, 1.0, seconds{10}},
      {seconds{60}, 0.0, seconds{60}},       {hours{24}, 0.0, seconds{60}},
      {hours{24}, 1.0, seconds{75}},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(requested_pause(row.asked, fakes::fixed_random(row.random)), row.pause);
    // After two failures the delay of a back-off of its own may be longer.
    Backoff backoff{seconds{3}, seconds{3}, seconds{9}, fakes::fixed_random(row.random)};
    EXPECT_EQ(backoff.next(row.asked), std::max(Duration{seconds{3}}, row.pause));
    EXPECT_GE(backoff.next(row.asked), std::max(Duration{seconds{3}}, row.pause));
    EXPECT_EQ(backoff.failures(), 2);
  }
}

TEST(BackoffTest, ARandomNumberIsAtLeastZeroAndBelowOne) {
  const Random random = system_random();
  double least = 1.0;
  double most = 0.0;
  for (int i = 0; i < 1000; ++i) {
    const double value = random();
    EXPECT_GE(value, 0.0);
    EXPECT_LT(value, 1.0);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_LT(least, 0.2);
  EXPECT_GT(most, 0.8);
}

}  // namespace
}  // namespace slurmlet
