#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace slurmlet {
namespace {

// Whether the stop taken is `expected` after these have come.
bool takes(std::optional<int> expected, std::initializer_list<int> numbers) {
  auto signals = Signals::open();
  for (const int number : numbers) {
    ::raise(number);
  }
  return signals && signals->take_stop() == expected;
}

// In processes of their own. GoogleTest runs a *DeathTest before other tests begin threads, which
// the look for leaks at exit would miss in the fork.
TEST(SignalsDeathTest, ASighupIsLoggedAndStopsNothing) {
  const auto ignored = "SIGHUP is ignored.*restart";
  EXPECT_EXIT(std::exit(takes(SIGTERM, {SIGHUP, SIGTERM}) ? 0 : 1), testing::ExitedWithCode(0),
              ignored);
  EXPECT_EXIT(std::exit(takes(SIGINT, {SIGINT}) ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(takes(std::nullopt, {SIGHUP}) ? 0 : 1), testing::ExitedWithCode(0),
              ignored);
}

}  // namespace
}  // namespace slurmlet
