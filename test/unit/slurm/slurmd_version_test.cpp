#include "slurm/local/slurmd_version.h"

#include <gtest/gtest.h>

#include "fake_runner.h"
#include "fakes/temp_tree.h"
#include "fixture.h"
#include "slurm/answers/slurmd_status.h"

namespace slurmlet::slurm {
namespace {

TEST(SlurmdVersion, ReadsWhatSlurmdPrints) {
  EXPECT_EQ(parse_slurmd_version(fixture("22.05.8/local-slurmd-V.out")), "22.05.8");
  EXPECT_EQ(parse_slurmd_version("slurm 25.11.8-0pre1\n"), "25.11.8-0pre1");
  for (const char* text : {"", "\n", "slurm", "slurm unknown", "bash 5.2", "slurmd: error: no"}) {
    EXPECT_EQ(parse_slurmd_version(text), "") << text;
  }
}

TEST(SlurmdVersion, FindsTheProgram) {
  fakes::TempTree tree;
  tree.dir("bin").file("sbin/slurmd", "", 0755).file("other/slurmd", "", 0755);
  EXPECT_EQ(find_slurmd_program(tree.path("other/slurmd"), tree.path("bin")),
            tree.path("other/slurmd").string());
  EXPECT_EQ(find_slurmd_program("", tree.path("bin")),
            tree.path("bin").string() + "/../sbin/slurmd");
  tree.file("bin/slurmd", "", 0755);
  EXPECT_EQ(find_slurmd_program("", tree.path("bin")), tree.path("bin/slurmd").string());
}

TEST(SlurmdVersion, AsksAndKeepsTheLastVersion) {
  FakeProgram program;
  SlurmdVersion version{std::make_unique<FakeRunner>(program)};
  const SteadyTime now{};
  version.ask("", now);
  EXPECT_TRUE(program.started.empty());

  version.ask("/usr/sbin/slurmd", now);
  ASSERT_EQ(program.started.size(), 1U);
  EXPECT_EQ(program.started[0].argv, (std::vector<std::string>{"/usr/sbin/slurmd", "-V"}));
  EXPECT_FALSE(version.step(now));
  program.end = CommandOutput{};
  program.end->out = "slurm 25.11.0\n";
  EXPECT_TRUE(version.step(now));
  EXPECT_EQ(version.version(), "25.11.0");
  EXPECT_EQ(version.deadline(), kNever);

  version.ask("/usr/sbin/slurmd", now);
  program.end = CommandOutput{};
  program.end->exit_code = 1;
  EXPECT_FALSE(version.step(now));
  EXPECT_EQ(version.version(), "25.11.0");
}

}  // namespace
}  // namespace slurmlet::slurm
