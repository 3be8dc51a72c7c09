// FactsSync: the machine, the answers of slurmctld, the jobs.

#include "sync/facts_sync.h"

#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Not;

using FactsSyncTest = FactsSyncFixture;

// --- the machine

TEST_F(FactsSyncTest, TheMachineIsKnownWithTheFirstStep) {
  metal3_ = node::Metal3Facts{};
  metal3_->uuid = "u1";
  make();
  EXPECT_EQ(facts().metal3, metal3_);
  EXPECT_EQ(liveness(), Liveness::kUnknown) << "not looked for yet";
  EXPECT_FALSE(facts().machine.memory_pressure);
  EXPECT_TRUE(grace_over());
  step();
  EXPECT_EQ(facts().machine.machine_id, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(facts().machine.memory_bytes, 16000000LL * 1024);
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  ASSERT_TRUE(facts().machine.memory_pressure);
  EXPECT_FALSE(facts().machine.memory_pressure->under_pressure);
  EXPECT_TRUE(facts().machine.disk_pressure);
  EXPECT_TRUE(facts().machine.pid_pressure);
}

TEST_F(FactsSyncTest, TheMachineIsReadAgainEachReportIntervalAndKeepsItsPressures) {
  options_.tick = hours{24};  // no new sample meanwhile
  options_.system_uuid = "4c4c4544-0042-3510-8052-b4c04f4d3533";
  start();
  const auto pressure = facts().machine.memory_pressure;
  tree_.file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  wait_quietly(options_.machine_interval - seconds{1});
  EXPECT_EQ(facts().machine.machine_id.front(), '0');
  wait_quietly(seconds{1});
  EXPECT_EQ(facts().machine.machine_id.front(), 'f');
  EXPECT_EQ(facts().machine.system_uuid, options_.system_uuid);
  ASSERT_TRUE(pressure);
  EXPECT_EQ(facts().machine.memory_pressure, pressure);
}

// Whatever the period of the slurmd watch.
TEST_F(FactsSyncTest, TicksFallOnMultiplesOfTheWallClock) {
  for (const Duration tick : {seconds{10}, seconds{4}}) {
    conf_.node_name = "";  // nothing to ask for: only the tick is left
    options_.tick = tick;
    set_memory_available("8000000");
    start();
    clock_.advance(milliseconds{3300});
    wait_quietly(seconds{1});  // the jobs' first look is over
    set_memory_available("50000");
    const SteadyTime next = step();
    EXPECT_LE(next - clock_.now().steady, tick);
    EXPECT_FALSE(facts().machine.memory_pressure->under_pressure);
    clock_.advance(next - clock_.now().steady);
    EXPECT_EQ(clock_.now().wall.time_since_epoch() % tick, Duration{});
    EXPECT_EQ(step() - clock_.now().steady, tick);
    EXPECT_TRUE(facts().machine.memory_pressure->under_pressure);
  }
}

TEST_F(FactsSyncTest, AQuietMachineWakesAtTicksOnly) {
  slurmd_starts();
  start_and_answer();
  int steps = 0;
  EXPECT_GE(run_until([&] { return ++steps > 6; }, minutes{2}), seconds{50});
}

// --- slurmctld

TEST_F(FactsSyncTest, TheAnswerIsTakenOver) {
  slurmd_starts();
  start();
  node::SlurmAnswer nothing;
  nothing.source = "scontrol";  // who will be asked
  EXPECT_EQ(facts().slurm, nothing);
  EXPECT_EQ(node::slurm_view(facts()).reason, "NotQueriedYet");
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  EXPECT_THAT(facts_->wake_fds(), Contains(kCommandFd)) << "the end of scontrol is waited for";
  answer();
  ASSERT_TRUE(facts().slurm.record);
  EXPECT_EQ(facts().slurm.record->state.base, "IDLE");
  EXPECT_EQ(facts().slurm.answered_at, clock_.now().wall);
  EXPECT_EQ(node::slurm_view(facts()).knowledge, node::Knowledge::kKnown);
  EXPECT_EQ(facts_->poll_counters().answers, 1U);
  EXPECT_THAT(facts_->wake_fds(), Not(Contains(kCommandFd)));
}

TEST_F(FactsSyncTest, AnAnswerGrowsStaleByItself) {
  poll_.stale_after = minutes{5};
  start_and_answer();
  EXPECT_FALSE(facts().slurm.stale);
  EXPECT_LE(run_until([this] { return facts().slurm.stale; }, minutes{5}), minutes{5})
      << "and wakes for it";
}

// --- jobs

TEST_F(FactsSyncTest, JobsAreKnownFromTheFirstStepWhereThereIsASpoolDirectory) {
  job_starts("spool", 9, 900);
  start();
  EXPECT_EQ(jobs(), 1);
  tree_.remove("spool");
  start();
  EXPECT_FALSE(facts().jobs);
}

TEST_F(FactsSyncTest, AJobHereContradictsAnIdleRecordAtOnce) {
  has_operator_ = true;
  slurmd_starts();
  make();
  const auto publish = [this](const std::string& state) {
    slurm::PublishedRecord record;
    record.interval = seconds{15};
    record.refresh = minutes{5};
    record.text = slurm::scontrol_record("nid1", state);
    record.dumped_at = std::chrono::floor<seconds>(clock_.now().wall);
    facts_->set_record(slurm::to_annotation(record));
    step();
  };
  publish("IDLE");
  EXPECT_TRUE(node::slurm_view(facts()).is("IDLE"));
  job_starts("spool", 10, 1000);
  wait_quietly(seconds{5});
  ASSERT_EQ(jobs(), 1);
  EXPECT_FALSE(node::slurm_view(facts()).is("IDLE"));
  EXPECT_TRUE(node::slurm_view(facts()).in_use);
  publish("MIXED");
  EXPECT_TRUE(node::slurm_view(facts()).is("MIXED"));
}

// A machine on which steps start all the time looks nevertheless, and no event wakes it before.
TEST_F(FactsSyncTest, AJobEventIsLookedAtALittleLaterAndAskedAboutThen) {
  slurmd_starts();
  start_and_answer();
  job_starts("spool", 9, 900);
  EXPECT_TRUE(wakes());
  const SteadyTime look = step();
  EXPECT_EQ(jobs(), 0) << "the step's process may not have its title yet";
  EXPECT_GT(look, clock_.now().steady);
  EXPECT_LE(look, clock_.now().steady + seconds{1});
  EXPECT_EQ(new_queries(), 0U) << "no fork while a job starts";
  job_starts("spool", 10, 1000);
  EXPECT_FALSE(wakes());
  clock_.advance(milliseconds{400});
  EXPECT_EQ(step(), look) << "it is not put off";
  clock_.advance(look - clock_.now().steady);
  step();
  EXPECT_EQ(jobs(), 2);
  job_starts("spool", 11, 1100);
  EXPECT_TRUE(wakes());
  run_until([this] { return new_queries() == 1; }, seconds{3});
}

TEST_F(FactsSyncTest, ManyJobEventsStayWithinTheRateOfQueries) {
  slurmd_starts();
  start_and_answer();
  for (int job = 1; job <= 100; ++job) {
    job_starts("spool", job, 1000 + job);
    step();
    if (dump_.running) {
      answer();
    }
    wait_quietly(milliseconds{100});
  }
  EXPECT_LE(new_queries(), 2U) << "one each 15 seconds";
  EXPECT_GT(jobs(), 90) << "looked at meanwhile";
  wait_quietly(seconds{1});
  EXPECT_EQ(jobs(), 100);
}

TEST_F(FactsSyncTest, EveryAnswerOfSlurmctldHasJobsOfItsOwnTime) {
  conf_.jobs.spool_dir = tree_.path("unwatched");  // no events from there
  tree_.dir("unwatched");
  slurmd_starts();
  start_and_answer();
  EXPECT_EQ(jobs(), 0);
  job_starts("unwatched", 9, 900);
  wait_quietly(minutes{1});
  EXPECT_EQ(jobs(), 0);
  slurmd_dies();  // makes it ask
  run_until([this] { return new_queries() == 1; }, seconds{3});
  EXPECT_EQ(jobs(), 0);
  answer();
  EXPECT_EQ(jobs(), 1);
}

}  // namespace
}  // namespace slurmlet::sync
