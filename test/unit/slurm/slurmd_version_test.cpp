#include "slurm/local/slurmd_programs.h"

#include <gtest/gtest.h>

#include "fake_runner.h"
#include "fixture.h"

namespace slurmlet::slurm {
namespace {

TEST(SlurmdVersion, ReadsWhatSlurmdPrints) {
  EXPECT_EQ(parse_slurmd_version(fixture("22.05.8/local-slurmd-V.out")), "22.05.8");
  EXPECT_EQ(parse_slurmd_version("slurm 25.11.8-0pre1\n"), "25.11.8-0pre1");
  for (const char* text : {"", "\n", "slurm", "slurm unknown", "bash 5.2", "slurmd: error: no"}) {
    EXPECT_EQ(parse_slurmd_version(text), "") << text;
  }
}

TEST(SlurmdVersion, LooksForTheProgram) {
  const std::string bin = "/opt/slurm/bin";
  const auto programs = slurmd_programs(bin);
  ASSERT_GT(programs.size(), 4U) << "and those in PATH";
  EXPECT_EQ(programs[0], bin + "/slurmd");
  EXPECT_EQ(programs[1], bin + "/../sbin/slurmd");
  EXPECT_EQ(programs.back(), "/usr/local/sbin/slurmd");
  EXPECT_EQ(slurmd_programs("").back(), "/usr/local/sbin/slurmd");
}

TEST(SlurmdVersion, AsksAndKeepsTheLastVersion) {
  FakeProgram program;
  SlurmdVersion version{std::make_unique<FakeRunner>(program)};
  const SteadyTime now{};
  version.query({"/opt/slurmd", "/usr/sbin/slurmd"}, now);
  ASSERT_EQ(program.started.size(), 1U);
  EXPECT_EQ(program.started[0].argv, (std::vector<std::string>{"slurmd", "-V"}));
  EXPECT_EQ(program.started[0].programs,
            (std::vector<std::string>{"/opt/slurmd", "/usr/sbin/slurmd"}));
  EXPECT_FALSE(version.step(now));
  program.end = CommandOutput{};
  program.end->out = "slurm 25.11.0\n";
  EXPECT_TRUE(version.step(now));
  EXPECT_EQ(version.version(), "25.11.0");
  EXPECT_EQ(version.deadline(), kNever);

  version.query({"/opt/slurmd", "/usr/sbin/slurmd"}, now);
  program.end = CommandOutput{};
  program.end->exit_code = 1;
  EXPECT_FALSE(version.step(now));
  EXPECT_EQ(version.version(), "25.11.0");
}

}  // namespace
}  // namespace slurmlet::slurm
