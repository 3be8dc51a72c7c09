// FactsSync: several slurmd on one machine, what systemd says of a missing one, and a slurmctld
// that does not hear a slurmd which runs.

#include "sync/facts_sync.h"

#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using slurm::add_process;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class FactsDoubtTest : public FactsSyncFixture {
 protected:
  void another_slurmd() { add_process(tree_, {4242, "slurmd", {"slurmd", "-N", "nid2"}}); }
};

TEST_F(FactsDoubtTest, SeveralSlurmdAreRefusedAndNothingIsAsked) {
  slurmd_starts({"-N", "nid1"});
  another_slurmd();
  start();
  wait_quietly(minutes{20});
  EXPECT_TRUE(dump_.started.empty());
  EXPECT_EQ(facts().slurm.failure, node::SlurmFailure::kNodeUnknown);
  EXPECT_THAT(facts().slurm.failure_detail, HasSubstr("several times"));
  EXPECT_EQ(liveness(), Liveness::kUnknown);
  EXPECT_THAT(facts().slurmd.detail, HasSubstr("several times"));
}

TEST_F(FactsDoubtTest, ASecondSlurmdIsNoticedAndSoIsItsEnd) {
  slurmd_starts({"-N", "nid1"});
  start_and_answer();
  ASSERT_TRUE(facts().slurm.record);
  another_slurmd();
  run_until([this] { return facts().slurm.failure.has_value(); }, minutes{6});
  EXPECT_FALSE(facts().slurm.record) << "it is not known whose that was";
  EXPECT_EQ(liveness(), Liveness::kUnknown) << "in the same step";

  tree_.remove("proc/4242");
  run_until([this] { return !facts().slurm.failure; }, minutes{1});
  EXPECT_EQ(liveness(), Liveness::kRunning) << "in the same step";
  run_until([this] { return new_queries() > 0; }, minutes{1});
  answer();
  EXPECT_TRUE(facts().slurm.record);
}

TEST_F(FactsDoubtTest, SystemdSaysOnceWhyThereIsNoSlurmd) {
  tree_.dir("run/systemd/system");
  slurmd_starts();
  start();
  EXPECT_TRUE(unit_.started.empty()) << "slurmd runs";
  slurmd_dies();
  run_until([this] { return unit_.running; }, seconds{20});  // systemctl has 5 s
  ASSERT_EQ(unit_.started.size(), 1U);
  EXPECT_THAT(unit_.started[0].argv, ::testing::Contains("slurmd.service"));
  unit_.end = CommandOutput{};
  unit_.end->out = "Result=exit-code\nExecMainStatus=1\nActiveState=failed\nSubState=failed\n";
  step();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  EXPECT_THAT(facts().slurmd.detail, HasSubstr("slurmd.service: failed"));
  wait_quietly(minutes{20});
  EXPECT_EQ(unit_.started.size(), 1U) << "once for each absence";

  slurmd_starts();
  step();
  EXPECT_EQ(facts().slurmd.detail, "");
  slurmd_dies();
  wait_quietly(seconds{20});
  EXPECT_EQ(unit_.started.size(), 2U);
}

TEST_F(FactsDoubtTest, ANotRespondingNodeWhoseSlurmdRunsIsAskedAboutOnceMoreSoon) {
  for (const bool runs : {true, false}) {
    dump_.started.clear();
    if (runs) {
      slurmd_starts();
    }
    start();
    run_until([this] { return !dump_.started.empty(); }, seconds{3});
    answer("IDLE+NOT_RESPONDING");
    ASSERT_TRUE(facts().slurm.record);
    ASSERT_TRUE(facts().slurm.record->state.has("NOT_RESPONDING"));
    if (runs) {
      const Duration waited = run_until([this] { return dump_.started.size() == 2; }, minutes{1});
      EXPECT_GE(waited, seconds{5}) << "slurmctld may hear it meanwhile";
      answer("IDLE+NOT_RESPONDING");
    }
    const auto asked = dump_.started.size();
    wait_quietly(minutes{30});
    EXPECT_EQ(dump_.started.size(), asked) << "once";
    EXPECT_TRUE(unit_.started.empty()) << "there is no systemd to ask why";
    if (runs) {
      slurmd_dies();
    }
  }
}

// A slurmd in a container has a spool directory of its own.
TEST_F(FactsDoubtTest, NoJobsInADirectoryThatIsNotSlurmdsAreUnknown) {
  slurmd_starts();
  const std::string own = "proc/self/mountinfo";
  const std::string others = fmt::format("proc/{}/mountinfo", slurmd_->pid());
  tree_.file(own, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  tree_.file(others, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  start_and_answer();
  ASSERT_TRUE(facts().jobs);
  EXPECT_EQ(facts().jobs->jobs, 0);
  tree_.file(others, "90 80 8:1 /srv/c1 / rw - ext4 /dev/sda1 rw\n");
  wait_quietly(minutes{6});
  EXPECT_FALSE(facts().jobs);
  job_starts("spool", 7, 4343);  // seen is seen
  wait_quietly(minutes{6});
  ASSERT_TRUE(facts().jobs);
  EXPECT_EQ(facts().jobs->jobs, 1);
}

// Its list may be long, and says the same as long as slurmd runs.
TEST_F(FactsDoubtTest, SlurmdsMountsAreReadOnceAReportAndForEachSlurmd) {
  poll_.interval = minutes{1};
  poll_.stale_after = minutes{5};
  slurmd_starts();
  const std::string ours = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
  const std::string theirs = "90 80 8:1 /srv/c1 / rw - ext4 /dev/sda1 rw\n";
  const auto mounts = [this](const std::string& lines) {
    tree_.file(fmt::format("proc/{}/mountinfo", slurmd_->pid()), lines);
  };
  tree_.file("proc/self/mountinfo", ours);
  mounts(ours);
  start_and_answer();
  const auto await_answer = [this] {
    const auto asked = dump_.started.size();
    run_until([&] { return dump_.started.size() > asked; }, minutes{2});
    answer();
  };
  mounts(theirs);
  await_answer();
  ASSERT_TRUE(facts().jobs) << "an answer of slurmctld is no reason";
  slurmd_dies();
  step();
  slurmd_starts();
  mounts(theirs);
  await_answer();
  EXPECT_FALSE(facts().jobs) << "another slurmd is";
}

}  // namespace
}  // namespace slurmlet::sync
