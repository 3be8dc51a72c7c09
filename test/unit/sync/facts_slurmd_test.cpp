// FactsSync: the life of slurmd and what is read again with each slurmd.

#include "sync/facts_sync.h"

#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using slurm::add_process;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using FactsSlurmdTest = FactsSyncFixture;

// --- slurmd

TEST_F(FactsSlurmdTest, ASlurmdThatIsThereIsSeenAtOnceAndSlurmConfReadOnce) {
  slurmd_starts();
  make();
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_TRUE(facts_->learns_version()) << "slurmd -V has not ended";
  end_version();
  EXPECT_FALSE(facts_->learns_version());
  EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
  EXPECT_EQ(facts().slurmd.version, "22.05.8");
  EXPECT_TRUE(grace_over());
  EXPECT_EQ(discovered_.size(), 1U);
}

TEST_F(FactsSlurmdTest, SlurmConfIsReadOnceAtAStartThoughItNamesNoNode) {
  conf_.name_problem = "slurmd runs here several times";
  slurmd_starts();
  make();
  (void)facts_->await_site(clock_.now(), options_.first_patience);
  step();
  EXPECT_EQ(discovered_.size(), 1U);
  wait_quietly(options_.tick + seconds{1});
  EXPECT_GT(discovered_.size(), 1U) << "again while there is something to resolve";
}

// It runs outside its unit and has not written its pidfile: what it says does not count yet.
TEST_F(FactsSlurmdTest, SlurmConfIsReadAgainOnceTheSlurmdOfTheStartCounts) {
  tree_.dir("counts");
  conf_.watch.places.proc_root = tree_.path("counts");
  slurmd_starts();
  tree_.remove("run/slurmd.pid");
  start();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  EXPECT_EQ(discovered_.size(), 1U);
  tree_.remove("counts");
  std::filesystem::create_symlink(tree_.path("proc"), tree_.path("counts"));
  tree_.file("run/slurmd.pid", std::to_string(slurmd_->pid()) + "\n");
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(discovered_.size(), 2U);
}

class FactsGraceTest : public FactsSyncFixture {
 protected:
  // It begins now, and wakes at its end.
  void expect_grace() {
    EXPECT_FALSE(grace_over());
    EXPECT_EQ(run_until([this] { return grace_over(); }, minutes{1}), seconds{15});
  }
};

TEST_F(FactsGraceTest, BeginsAtADeathWhichIsAWakeUp) {
  slurmd_starts();
  clock_.advance(milliseconds{3300});
  start_and_answer();
  EXPECT_FALSE(wakes());
  slurmd_dies();
  EXPECT_TRUE(wakes());
  step();
  answer();  // so that the end of scontrol is no wake-up
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  expect_grace();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
}

TEST_F(FactsGraceTest, ItsEndDoesNotKeepTheLoopAwake) {
  conf_.node_name = "";
  slurmd_starts();
  start();
  slurmd_dies();
  wait_quietly(seconds{15});
  ASSERT_TRUE(grace_over());
  EXPECT_GT(step(), clock_.now().steady + seconds{1});
}

TEST_F(FactsGraceTest, OfASlurmdThatWasNeverThereIsNone) {
  start();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  EXPECT_TRUE(grace_over());
  wait_quietly(minutes{1});
  EXPECT_TRUE(grace_over());
}

TEST_F(FactsGraceTest, EachDeathHasOneOfItsOwnAndAStopToo) {
  slurmd_starts();
  start_and_answer();
  slurmd_dies();
  wait_quietly(seconds{10});
  EXPECT_FALSE(grace_over());
  slurmd_starts();
  EXPECT_TRUE(wakes());
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_TRUE(grace_over());
  wait_quietly(seconds{20});
  slurmd_dies();
  step();
  expect_grace();
  slurmd_starts();
  step();
  add_process(tree_, {slurmd_->pid(), "slurmd", {"/usr/sbin/slurmd"}, 'T'});
  run_until([this] { return liveness() == Liveness::kStopped; }, seconds{10});
  expect_grace();
}

TEST_F(FactsSlurmdTest, ASecondSlurmdIsNotTakenForOursWhenOursDies) {
  name_of_several_ = "nid1";
  slurmd_starts({"-N", "nid1"});
  start_and_answer();
  const fakes::SleepingChild second;
  add_process(tree_, {second.pid(), "slurmd", {"/usr/sbin/slurmd", "-N", "nid2"}});
  wait_quietly(options_.machine_interval + seconds{1});
  EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
  slurmd_dies();
  step();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  wait_quietly(minutes{1});
  EXPECT_EQ(liveness(), Liveness::kAbsent);
}

TEST_F(FactsSlurmdTest, ARejectedFileIsLookedAtAgainUntilItCounts) {
  const SlurmSetup good = conf_;
  conf_.node_name = "";
  conf_.name_problem = "others may change it";
  conf_.name_problem_cause = node::SlurmFailure::kBadConfiguration;
  slurmd_starts();
  start();
  EXPECT_EQ(liveness(), Liveness::kUnknown);
  EXPECT_EQ(facts().slurmd.detail, conf_.name_problem);
  EXPECT_EQ(facts().slurm.failure, node::SlurmFailure::kBadConfiguration);
  EXPECT_TRUE(dump_.started.empty());
  conf_ = good;
  wait_quietly(options_.tick + seconds{1});
  EXPECT_EQ(liveness(), Liveness::kRunning);
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
}

TEST_F(FactsSlurmdTest, AReplacedSlurmdIsNoDeath) {
  const auto replace = [this] {
    const auto old = std::move(slurmd_);
    slurmd_starts();
    old->signal(SIGKILL);
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(old->pid()), &info, WEXITED | WNOWAIT), 0);
    tree_.remove("proc/" + std::to_string(old->pid()));
    step();
    EXPECT_EQ(liveness(), Liveness::kRunning);
    EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
    EXPECT_TRUE(grace_over());
  };
  slurmd_starts();
  start_and_answer();
  poll_.spread = seconds{30};
  conf_.pace = poll_;
  replace();
  run_until([this] { return discovered_.size() == 2; }, seconds{30});  // for the successor, too
  // It happens on all nodes at the same moment.
  wait_quietly(minutes{1});
  EXPECT_EQ(new_queries(), 0U);
  replace();
  EXPECT_EQ(discovered_.size(), 2U) << "slurm.conf is read at this node's place in half a minute";
  wait_quietly(seconds{30});
  EXPECT_EQ(discovered_.size(), 3U);
  EXPECT_EQ(new_queries(), 0U);
}

TEST_F(FactsSlurmdTest, DeathAndBirthOfSlurmdAreAskedAboutSoon) {
  slurmd_starts();
  start_and_answer();
  slurmd_dies();
  run_until([this] { return new_queries() == 1; }, seconds{3});
  answer();
  wait_quietly(minutes{1});
  EXPECT_EQ(new_queries(), 1U);
  slurmd_starts();
  run_until([this] { return new_queries() == 2; }, seconds{3});
}

// --- slurm.conf

TEST_F(FactsSlurmdTest, SlurmConfIsReadOnceMoreForEachSlurmd) {
  make();
  step();
  EXPECT_THAT(discovered_, ElementsAre(""));
  slurmd_starts({"-D", "-N", "nid7"});
  step();
  end_version();
  EXPECT_THAT(discovered_, ElementsAre("", "nid7"));
  wait_quietly(minutes{20});
  EXPECT_EQ(discovered_.size(), 2U) << "the same slurmd still";

  slurmd_dies();
  wait_quietly(minutes{1});
  EXPECT_EQ(discovered_.size(), 2U) << "nothing to learn from its end";
  conf_.conf.cluster_name = "daint";
  slurmd_starts();
  step();
  EXPECT_THAT(discovered_, ElementsAre("", "nid7", ""));
  EXPECT_EQ(facts().slurm_conf.cluster_name, "daint");
}

TEST_F(FactsSlurmdTest, MissingGpuFilesAreLookedForWhenSlurmdStartsAndAtEachReport) {
  tree_.file("dev/nvidia0", "");
  make();
  step();
  EXPECT_THAT(facts().machine.missing_gpu_files, IsEmpty());
  conf_.conf.gpu_files = {{"/dev/nvidia0"}, {"/dev/nvidia1"}};  // gres.conf has changed
  tree_.file("dev/nvidia1", "").remove("dev/nvidia0");
  slurmd_starts();
  step();
  end_version();
  EXPECT_THAT(facts().machine.missing_gpu_files, ElementsAre("/dev/nvidia0"));
  tree_.file("dev/nvidia0", "");
  wait_quietly(options_.machine_interval);
  EXPECT_THAT(facts().machine.missing_gpu_files, IsEmpty());
}

TEST_F(FactsSlurmdTest, AnotherNodeNameIsAskedAboutAndTheOldAnswerForgotten) {
  slurmd_starts();
  start_and_answer();
  ASSERT_TRUE(facts().slurm.record);
  slurmd_dies();
  run_until([this] { return new_queries() > 0; }, seconds{3});
  answer();
  queries_ = dump_.started.size();
  slurmd_starts({"-N", "nid7"});
  step();
  EXPECT_FALSE(facts().slurm.record);
  run_until([this] { return new_queries() > 0; }, seconds{3});
  EXPECT_EQ(facts_->setup().node_name, "nid7");
  answer();
  ASSERT_TRUE(facts().slurm.record);
  EXPECT_EQ(facts().slurm.record->name, "nid7");
  EXPECT_EQ(liveness(), Liveness::kRunning);
}

TEST_F(FactsSlurmdTest, AnAnswerAboutTheOldNameDoesNotCount) {
  slurmd_starts();
  start();
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  slurmd_dies();
  step();
  slurmd_starts({"-N", "nid7"});
  step();
  answer();
  EXPECT_FALSE(facts().slurm.record);
}

TEST_F(FactsSlurmdTest, ANewSpoolDirectoryIsLookedInto) {
  slurmd_starts();
  start();
  wait_quietly(minutes{1});
  EXPECT_EQ(jobs(), 0);
  job_starts("spool2", 9, 900);
  conf_.watch.spool_dir = conf_.jobs.spool_dir = tree_.path("spool2");
  slurmd_dies();
  step();
  slurmd_starts();
  wait_quietly(seconds{1});
  EXPECT_EQ(jobs(), 1);
  job_starts("spool2", 10, 1000);
  EXPECT_TRUE(wakes()) << "and it is watched";
  wait_quietly(seconds{1});
  EXPECT_EQ(jobs(), 2);
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
}

TEST_F(FactsSlurmdTest, AnUnreadableSlurmConfIsReadOnceItsSlurmdRuns) {
  const SlurmSetup good = conf_;
  conf_.node_name = "";
  conf_.conf = {};
  conf_.problem = "there is none";
  start();
  wait_quietly(minutes{1});
  EXPECT_TRUE(dump_.started.empty());
  EXPECT_EQ(facts().slurm_conf.cluster_name, "");
  conf_ = good;
  slurmd_starts();
  step();
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  ASSERT_FALSE(dump_.started.empty());
}

}  // namespace
}  // namespace slurmlet::sync
