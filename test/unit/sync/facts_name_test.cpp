// FactsSync: a node whose name slurmctld chooses (slurmd -F).

#include "sync/facts_sync.h"
#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;

class FactsNameTest : public FactsSyncFixture {
 protected:
  void slurmd_tells(const std::string& name) {
    CommandOutput output;
    output.out = "Active Steps = NONE\nActual CPUs = 2\nHostname = " + name + "\nVersion = 24.11\n";
    scontrol_.end = output;
    step();
  }
  void slurmd_is_not_ready() {
    scontrol_.end = CommandOutput{};
    scontrol_.end->exit_code = 1;
    step();
  }
  void slurmd_is_replaced(const std::vector<std::string>& options) {
    slurmd_dies();
    slurmd_starts(options);
    step();
  }
  std::string asked_about() const { return facts_->setup().node_name; }
};

TEST_F(FactsNameTest, NothingIsAskedOfSlurmctldBeforeSlurmdHasToldTheName) {
  slurmd_starts({"-Fdynf"});
  start();
  ASSERT_EQ(scontrol_.started.size(), 1U);
  EXPECT_TRUE(facts_->learns_about_slurmd());
  EXPECT_THAT(facts_->wake_fds(), Contains(kCommandFd));
  EXPECT_EQ(facts().slurm.failure, node::SlurmFailure::kNodeUnknown);
  EXPECT_EQ(facts().slurm.failure_detail, "slurmd has not told it yet");
  EXPECT_EQ(liveness(), Liveness::kRunning) << "that is known";
  wait_quietly(seconds{5});
  EXPECT_TRUE(dump_.started.empty());

  slurmd_tells("fut7");
  EXPECT_FALSE(facts().slurm.failure);
  EXPECT_TRUE(facts_->learns_about_slurmd()) << "its version, in its new places";
  end_version();
  EXPECT_FALSE(facts_->learns_about_slurmd());
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  EXPECT_EQ(asked_about(), "fut7");
  answer();
  ASSERT_TRUE(facts().slurm.record);
  EXPECT_EQ(facts().slurm.record->name, "fut7");
  wait_quietly(minutes{20});
  EXPECT_EQ(scontrol_.started.size(), 1U) << "once";
}

TEST_F(FactsNameTest, ASlurmdThatIsNotReadyIsAskedAgain) {
  slurmd_starts({"-F"});
  start();
  slurmd_is_not_ready();
  EXPECT_EQ(run_until([this] { return scontrol_.started.size() == 2; }, minutes{1}), seconds{10});
  slurmd_tells("fut1");
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  EXPECT_EQ(asked_about(), "fut1");
}

// A reconfigure of Slurm is no reason to know nothing.
TEST_F(FactsNameTest, ItsSuccessorHasTheNameUntilItTellsAnother) {
  slurmd_starts({"-F"});
  start();
  slurmd_tells("fut1");
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  answer();
  slurmd_is_replaced({"-F"});
  ASSERT_EQ(scontrol_.started.size(), 2U);
  EXPECT_TRUE(facts().slurm.record);
  slurmd_tells("fut1");
  EXPECT_TRUE(facts().slurm.record);

  slurmd_is_replaced({"-F"});
  ASSERT_EQ(scontrol_.started.size(), 3U);
  slurmd_tells("fut2");
  EXPECT_FALSE(facts().slurm.record);
  run_until([this] { return !dump_.running; }, minutes{1});
  run_until([this] { return dump_.running; }, minutes{1});
  EXPECT_EQ(asked_about(), "fut2");
}

TEST_F(FactsNameTest, AfterOtherOptionsTheNameIsAnothersUntilItIsTold) {
  slurmd_starts({"-F"});
  start();
  slurmd_tells("fut1");
  slurmd_is_replaced({"-F", "-f", "/other.conf"});
  EXPECT_EQ(facts().slurm.failure, node::SlurmFailure::kNodeUnknown);
  EXPECT_EQ(scontrol_.started.size(), 2U);
}

TEST_F(FactsNameTest, OtherSlurmdAreNotAsked) {
  slurmd_starts({"-N", "nid1"});
  start();
  wait_quietly(minutes{20});
  EXPECT_TRUE(scontrol_.started.empty());
}

}  // namespace
}  // namespace slurmlet::sync
