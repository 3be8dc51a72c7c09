#include "credentials/bootstrap.h"

#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

namespace slurmlet::credentials {
namespace bootstrap_pause_test {

using std::chrono::hours;
using std::chrono::minutes;

const SteadyTime kNow{hours{24}};

class BootstrapPauseTest : public ::testing::Test {
 protected:
  Duration pause_after_a_try() {
    pause_.tried(kNow);
    return pause_.rejected() - kNow;
  }

  fakes::TempTree tree_;
  BootstrapPause pause_{{tree_.path("token")}, [] { return 1.0; }};
};

TEST_F(BootstrapPauseTest, TheFirstIsAtOnceThenThePausesGrowToAnHour) {
  EXPECT_LT(pause_.rejected(), kNow);
  Duration longest = pause_after_a_try();
  EXPECT_GE(longest, minutes{1});
  for (int tries = 0; tries < 20; ++tries) {
    const Duration pause = pause_after_a_try();
    EXPECT_GE(pause, longest);
    longest = pause;
  }
  EXPECT_EQ(longest, hours{1});
}

TEST_F(BootstrapPauseTest, AnotherTokenIsTriedAtOnceAndThePausesBeginAnew) {
  tree_.file("token", "old");
  const Duration first = pause_after_a_try();
  EXPECT_GT(pause_after_a_try(), first);
  EXPECT_GT(pause_.rejected(), kNow) << "nothing changed";
  tree_.file("token", "another");
  EXPECT_LT(pause_.rejected(), kNow);
  EXPECT_EQ(pause_after_a_try(), first);
}

TEST_F(BootstrapPauseTest, ATokenThatComesWhileABootstrapIsTriedIsNotMissed) {
  EXPECT_LT(pause_.rejected(), kNow);
  tree_.file("token", "new");
  pause_.tried(kNow);
  EXPECT_LT(pause_.rejected(), kNow);
}

TEST_F(BootstrapPauseTest, ItWakesNobodyWhileTheCredentialIsAccepted) {
  EXPECT_EQ(pause_.fd(), -1);
  (void)pause_.rejected();
  EXPECT_GE(pause_.fd(), 0);
  pause_.accepted();
  EXPECT_EQ(pause_.fd(), -1);
}

}  // namespace bootstrap_pause_test
}  // namespace slurmlet::credentials
