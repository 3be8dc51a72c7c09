#include "base/turn_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fakes/fake_clock.h"

namespace slurmlet {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A loop that turns as fast as it can, a turn a hundred microseconds.
class TurnGuardTest : public ::testing::Test {
 protected:
  int spin(Duration time) {
    int turns = 0;
    for (const SteadyTime end = clock_.now().steady + time; clock_.now().steady < end; ++turns) {
      clock_.advance(guard_.turn(clock_.now().steady, "a pipe that nobody reads"));
      clock_.advance(microseconds{100});
    }
    return turns;
  }
  fakes::FakeClock clock_;
  TurnGuard guard_{"main", 20};
};

TEST_F(TurnGuardTest, ALoopWithReasonsNeverWaits) {
  for (int i = 0; i < 20'000; ++i) {
    EXPECT_EQ(guard_.turn(clock_.now().steady, "a timer"), Duration::zero());
    clock_.advance(milliseconds{50});
  }
  EXPECT_EQ(guard_.slowed(), 0U);
}

TEST_F(TurnGuardTest, ABurstNeverWaitsAndTheNextOneNeitherOnceTheStockIsFull) {
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < TurnGuard::kStock; ++i) {
      EXPECT_EQ(guard_.turn(clock_.now().steady, "pods"), Duration::zero());
    }
    clock_.advance(seconds{50});
  }
}

TEST_F(TurnGuardTest, ASpinningLoopIsHeldToItsRateAndCounted) {
  const int turns = spin(seconds{75});
  EXPECT_GE(turns, TurnGuard::kStock);
  EXPECT_LE(turns, TurnGuard::kStock + 75 * 20 + 10);
  EXPECT_GE(guard_.slowed(), 70U * 19);
  EXPECT_LE(spin(minutes{10}), 10 * 60 * 20 + 1);
}

TEST_F(TurnGuardTest, SaysOnceWhatWokeItAndAgainAfterAQuietTime) {
  ::testing::internal::CaptureStderr();
  spin(minutes{30});
  std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("main thread"), HasSubstr("a pipe that nobody reads"),
                          HasSubstr("20 a second")));
  clock_.advance(hours{1});
  ::testing::internal::CaptureStderr();
  spin(seconds{10});
  text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace slurmlet
