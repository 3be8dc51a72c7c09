#include "status/watchdog.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace slurmlet::status {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime kStart{hours{1}};

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() {
    watchdog_.works(Loop::kMain, kStart);
    watchdog_.sleeps(Loop::kMain, kStart + seconds{30});
    watchdog_.works(Loop::kLease, kStart);
    watchdog_.sleeps(Loop::kLease, kStart + seconds{10});
  }
  // `loop` wakes up and sleeps for `pause`; returns whether it pinged.
  bool step(Loop loop, SteadyTime now, Duration pause) {
    watchdog_.works(loop, now);
    watchdog_.sleeps(loop, now + pause);
    const bool due = watchdog_.is_due(now, now + pause);
    if (due) {
      watchdog_.pinged(now);
    }
    return due;
  }

  Watchdog watchdog_{seconds{60}};
};

TEST_F(WatchdogTest, TheFirstPingIsDueAtOnceAndTheNextBeforeItIsLate) {
  EXPECT_TRUE(step(Loop::kLease, kStart, seconds{10}));
  EXPECT_FALSE(step(Loop::kLease, kStart + seconds{10}, seconds{10}));
  EXPECT_FALSE(step(Loop::kLease, kStart + seconds{20}, seconds{10}))
      << "the next wake-up at 30 s is early enough";
  EXPECT_TRUE(step(Loop::kLease, kStart + seconds{30}, seconds{10}))
      << "at 40 s it would be too late";
}

TEST_F(WatchdogTest, AUsualHourNeedsFewPingsAndNoneComesLate) {
  // The Lease's wake-ups are about ten seconds apart, the main loop's thirty.
  SteadyTime lease = kStart;
  SteadyTime main = kStart + seconds{7};
  SteadyTime last = kStart;
  Duration longest{};
  int pings = 0;
  while (lease < kStart + hours{1}) {
    const bool is_lease = lease < main;
    const SteadyTime now = std::min(lease, main);
    const Duration pause = is_lease ? Duration{std::chrono::milliseconds{10'300}} : seconds{30};
    if (step(is_lease ? Loop::kLease : Loop::kMain, now, pause)) {
      longest = std::max(longest, now - last);
      last = now;
      ++pings;
    }
    (is_lease ? lease : main) += pause;
  }
  EXPECT_LE(longest, seconds{40});
  EXPECT_LE(pings, 3 * 60);
  EXPECT_GE(pings, 60);
}

TEST_F(WatchdogTest, ALeaseLoopThatHangsInAStepEndsThePings) {
  watchdog_.works(Loop::kLease, kStart + seconds{10});  // and never sleeps again
  bool pinged = false;
  SteadyTime last{};
  for (int s = 10; s < 600; s += 5) {
    if (step(Loop::kMain, kStart + seconds{s}, seconds{5})) {
      pinged = true;
      last = kStart + seconds{s};
    }
  }
  EXPECT_TRUE(pinged) << "a slow call is no hang";
  EXPECT_LE(last, kStart + seconds{10} + watchdog_.patience());
  EXPECT_TRUE(watchdog_.hangs(Loop::kLease, kStart + minutes{10}));
  EXPECT_FALSE(watchdog_.hangs(Loop::kMain, kStart + minutes{9}));
}

TEST_F(WatchdogTest, AMainLoopThatHangsEndsThePingsOfTheLeaseLoop) {
  watchdog_.works(Loop::kMain, kStart);
  SteadyTime last{};
  for (int s = 0; s < 600; s += 10) {
    if (step(Loop::kLease, kStart + seconds{s}, seconds{10})) {
      last = kStart + seconds{s};
    }
  }
  EXPECT_LE(last, kStart + watchdog_.patience());
}

TEST_F(WatchdogTest, ALoopThatDoesNotWakeInTimeHangs) {
  EXPECT_FALSE(watchdog_.hangs(Loop::kLease, kStart + seconds{10} + watchdog_.patience()));
  EXPECT_TRUE(watchdog_.hangs(Loop::kLease, kStart + seconds{11} + watchdog_.patience()));
}

TEST_F(WatchdogTest, ALoopThatWaitsForAnotherDoesNotHang) {
  watchdog_.sleeps(Loop::kLease, kNever);
  const SteadyTime later = kStart + hours{5};
  watchdog_.sleeps(Loop::kMain, later + seconds{30});
  EXPECT_TRUE(watchdog_.alive(later));
  watchdog_.works(Loop::kLease, later);
  EXPECT_TRUE(watchdog_.alive(later + watchdog_.patience()));
  EXPECT_FALSE(watchdog_.alive(later + watchdog_.patience() + seconds{1}));
}

TEST_F(WatchdogTest, ALoopThatRecoversIsAliveAgain) {
  const SteadyTime late = kStart + minutes{5};
  EXPECT_FALSE(watchdog_.is_due(late, late + seconds{10}));
  EXPECT_FALSE(step(Loop::kMain, late, seconds{30})) << "the lease loop is still missing";
  EXPECT_TRUE(step(Loop::kLease, late, seconds{10}));
}

TEST_F(WatchdogTest, AnEndedLoopDoesNotHang) {
  watchdog_.ended(Loop::kLease);
  watchdog_.sleeps(Loop::kMain, kStart + hours{2});
  EXPECT_TRUE(watchdog_.alive(kStart + hours{1}));
}

TEST_F(WatchdogTest, APauseThatIsLongerThanTheIntervalIsPingedBefore) {
  EXPECT_TRUE(step(Loop::kLease, kStart, seconds{10}));
  EXPECT_TRUE(step(Loop::kMain, kStart + seconds{1}, minutes{2}));
}

TEST(WatchdogIntervalTest, NoPingIsDueWithoutAnInterval) {
  Watchdog watchdog{std::nullopt};
  watchdog.works(Loop::kMain, kStart);
  EXPECT_TRUE(watchdog.alive(kStart));
  EXPECT_FALSE(watchdog.is_due(kStart, kNever));
}

TEST(WatchdogIntervalTest, PatienceOutlastsAFewCallsToASilentServer) {
  EXPECT_EQ(Watchdog{seconds{60}}.patience(), seconds{45});
  EXPECT_EQ(Watchdog{seconds{5}}.patience(), seconds{30});
}

}  // namespace
}  // namespace slurmlet::status
