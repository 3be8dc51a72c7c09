#include "host/shutdown.h"

#include <gtest/gtest.h>

#include <chrono>

#include "fakes/temp_tree.h"

namespace slurmlet::host {
namespace {

using std::chrono::microseconds;

TEST(ShutdownDue, FollowsLogindsFile) {
  const WallTime now{std::chrono::seconds{1'700'000'000}};
  struct Case {
    const char* text;
    bool due;
  };
  for (const auto& [text, due] : std::initializer_list<Case>{
           {"USEC=1700000000000000\nWARN_WALL=1\nMODE=poweroff\nUID=0\n", true},
           {"USEC=1699999999000000\nMODE=reboot\n", true},
           {"USEC=1700000000000000\nMODE=kexec\n", true},
           {"USEC=1700000000000001\nMODE=reboot\n", false},
           {"USEC=1700000000000000\nMODE=dry-reboot\n", false},
           {"MODE=reboot\n", false},
           {"USEC=soon\nMODE=reboot\n", false},
           {"", false}}) {
    EXPECT_EQ(is_shutdown_due(text, now), due) << text;
  }
}

class SystemIsStopping : public ::testing::Test {
 protected:
  ShutdownSources saying(const std::string& script) {
    ShutdownSources sources;
    sources.command = {"sh", "-c", script};
    sources.time_limit = std::chrono::minutes{1};  // a busy machine
    sources.scheduled = tree_.path("scheduled");
    return sources;
  }
  fakes::TempTree tree_;
};

TEST_F(SystemIsStopping, TrustsSystemdWhateverItsExitCode) {
  EXPECT_TRUE(system_is_stopping(saying("echo stopping; exit 1")));
}

TEST_F(SystemIsStopping, WaitsASecondForAnAnswer) {
  auto sources = saying("sleep 1; echo stopping");
  sources.time_limit = ShutdownSources{}.time_limit;
  EXPECT_TRUE(system_is_stopping(sources));
}

TEST_F(SystemIsStopping, OtherStatesAreNot) {
  for (const char* state : {"running", "degraded", "maintenance", "offline", "unknown", ""}) {
    EXPECT_FALSE(system_is_stopping(saying("echo " + std::string{state}))) << state;
  }
}

TEST_F(SystemIsStopping, WithoutSystemdTheFileDecides) {
  auto sources = saying("");
  sources.command = {"no-such-program-slurmlet"};
  EXPECT_FALSE(system_is_stopping(sources));
  tree_.file("scheduled", "USEC=1700000000000000\nMODE=reboot\n");
  EXPECT_TRUE(system_is_stopping(sources));
}

TEST_F(SystemIsStopping, GivesUpAtTheTimeLimit) {
  auto sources = saying("sleep 30; echo stopping");
  sources.time_limit = std::chrono::milliseconds{50};
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(system_is_stopping(sources));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{5});
}

}  // namespace
}  // namespace slurmlet::host
