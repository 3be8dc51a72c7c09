#include "slurm/local/slurmd_programs.h"

#include <gtest/gtest.h>

#include "fake_runner.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::seconds;

TEST(SlurmdUnit, IsDescribedInOneLine) {
  const std::string loaded = "LoadState=loaded\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {loaded + "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\n",
       "u.service: failed (exit-code 1)"},
      {loaded + "ActiveState=failed\nSubState=failed\nResult=signal\nExecMainStatus=9\n",
       "u.service: failed (signal 9)"},
      {loaded + "ActiveState=failed\nSubState=failed\nResult=timeout\nExecMainStatus=0\n",
       "u.service: failed (timeout)"},
      {loaded + "ActiveState=inactive\nSubState=dead\nResult=success\nExecMainStatus=0\n",
       "u.service: inactive (dead)"},
      {loaded + "ActiveState=activating\nSubState=auto-restart\nResult=exit-code\n"
                "ExecMainStatus=203\n",
       "u.service: activating (auto-restart, exit-code 203)"},
      {"LoadState=masked\nActiveState=inactive\nSubState=dead\n", "u.service: masked"},
      {"LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\n", ""},
      {loaded + "ActiveState=active\nSubState=running\n", ""},
      {"no such thing", ""},
      {"", ""},
  };
  for (const auto& [properties, text] : cases) {
    EXPECT_EQ(describe_unit("u.service", properties), text) << properties;
  }
}

TEST(SlurmdUnit, AHangingSystemctlIsEndedAndSaysNothing) {
  fakes::TempTree tree;
  tree.dir("systemd");
  fakes::FakeClock clock;
  FakeProgram program;
  SlurmdUnit unit{std::make_unique<FakeRunner>(program), tree.path("systemd")};
  unit.run_once("slurmd.service", clock.now().steady);
  unit.run_once("slurmd.service", clock.now().steady);
  ASSERT_EQ(program.started.size(), 1U);
  EXPECT_EQ(unit.deadline(), clock.now().steady + seconds{5});
  clock.advance(seconds{5});
  unit.step(clock.now().steady);
  EXPECT_EQ(program.killed, 1);
  EXPECT_EQ(unit.deadline(), kNever);
  EXPECT_EQ(unit.detail(), "");
}

TEST(SlurmdUnit, AnAnswerAfterSlurmdCameBackIsDropped) {
  fakes::TempTree tree;
  tree.dir("systemd");
  fakes::FakeClock clock;
  FakeProgram program;
  SlurmdUnit unit{std::make_unique<FakeRunner>(program), tree.path("systemd")};
  unit.run_once("slurmd.service", clock.now().steady);
  unit.reset();
  program.end = CommandOutput{};
  program.end->out = "LoadState=loaded\nActiveState=failed\n";
  unit.step(clock.now().steady);
  EXPECT_EQ(unit.detail(), "");
}

}  // namespace
}  // namespace slurmlet::slurm
