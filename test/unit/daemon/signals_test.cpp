#include "daemon/signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace slurmlet::daemon {
namespace {

// Whether the first signal taken is `expected` after these have come.
bool takes(int expected, std::initializer_list<int> numbers) {
  auto signals = Signals::open();
  for (const int number : numbers) {
    ::raise(number);
  }
  return signals && signals->take() == expected;
}

// In processes of their own. GoogleTest runs a *DeathTest before other tests begin threads, which
// the look for leaks at exit would miss in the fork.
TEST(SignalsDeathTest, WhoIsToEndDoesNotReloadBefore) {
  EXPECT_EXIT(std::exit(takes(SIGTERM, {SIGHUP, SIGTERM}) ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(takes(SIGINT, {SIGINT, SIGHUP}) ? 0 : 1), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(takes(SIGHUP, {SIGHUP, SIGHUP}) ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace slurmlet::daemon
