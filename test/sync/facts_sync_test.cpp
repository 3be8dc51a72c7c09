// FactsSync over a temporary machine: /proc, the spool directory and the pidfile are files of the
// test, slurmd is a real process (its end is an event) that the temporary /proc calls slurmd.

#include "sync/facts_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "node/slurm_view.h"
#include "slurm/fake_proc.h"
#include "slurm/fake_runner.h"
#include "slurm/fixture.h"

extern char** environ;

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using slurm::add_process;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr int kCommandFd = 77;  // of FakeRunner

// Waits for nothing but its end.
class Child {
 public:
  Child() {
    std::string name = "sleep";
    std::string argument = "1000";
    char* arguments[] = {name.data(), argument.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/bin/sleep", nullptr, nullptr, arguments, environ), 0);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class FactsSyncTest : public ::testing::Test {
 protected:
  FactsSyncTest() {
    tree_.dir("run").dir("spool").dir("cgroup").dir("sys");
    tree_.file("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    set_memory_available("8000000");
    tree_.file("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
    tree_.file("proc/sys/kernel/pid_max", "32768\n");
    tree_.file("proc/sys/kernel/threads-max", "100000\n");
    add_process(tree_, {1, "systemd", {"/sbin/init"}});
    options_.paths = {tree_.path("proc"), tree_.path("sys"), tree_.path("etc"),
                      tree_.path("usr"),  tree_.path("run"), tree_.root()};
    options_.tick = seconds{10};
    conf_.watch.rescan = conf_.watch.state_check = seconds{10};
    conf_.node_name = "nid1";
    conf_.conf.cluster_name = "alps";
    conf_.watch.places = {tree_.path("proc"), tree_.path("cgroup"), tree_.path("run/slurmd.pid")};
    conf_.watch.spool_dir = tree_.path("spool");
    conf_.watch.slurmd_program = "/bin/true";  // never run: the runner is a fake
    conf_.jobs = {tree_.path("spool"), "", tree_.path("proc"), tree_.path("cgroup")};
    poll_.interval = hours{24};  // what is asked beyond the first question is asked on evidence
    poll_.stale_after = hours{48};
  }

  // Just started; nothing has been looked at but the machine and slurm.conf.
  void make() {
    auto discover = [this](const std::string& slurmd_option) {
      discovered_.push_back(slurmd_option);
      SlurmSetup setup = conf_;
      if (!slurmd_option.empty()) {
        setup.node_name = slurmd_option;
      }
      return setup;
    };
    auto poll = std::make_unique<slurm::ControllerPoll>(
        poll_, "", std::make_unique<slurm::FakeRunner>(sinfo_), [] { return 0.5; });
    facts_ = std::make_unique<FactsSync>(options_, metal3_, discover, std::move(poll),
                                         std::make_unique<slurm::FakeRunner>(version_));
  }
  // Has looked for slurmd, and `slurmd -V` has ended.
  void start() {
    make();
    step();
    end_version();
  }
  // Also the first question has been answered, and that was long ago.
  void start_and_answer() {
    start();
    run_until([this] { return !sinfo_.started.empty(); }, seconds{3});
    answer();
    wait_quietly(minutes{1});
    questions_ = sinfo_.started.size();
  }
  SteadyTime step() { return facts_->step(clock_.now()); }
  void end_version() {
    version_.end = CommandOutput{};
    version_.end->out = "slurm-wlm 22.05.8\n";
    step();
  }
  // slurmctld answers about the node that was asked for: idle.
  void answer() {
    if (sinfo_.started.empty()) {
      ADD_FAILURE() << "slurmctld has not been asked";
      return;
    }
    CommandOutput output;
    output.out = slurm::fixture("22.05.8/query-idle.out");
    output.out.replace(0, output.out.find('|'), sinfo_.started.back().argv[5]);
    sinfo_.end = output;
    step();
  }

  // Goes from wake-up to wake-up until `done`; how long that took.
  Duration run_until(const std::function<bool()>& done, Duration limit) {
    const SteadyTime begin = clock_.now().steady;
    while (true) {
      const SteadyTime next = step();
      if (done() || next > begin + limit) {
        EXPECT_TRUE(done()) << "not within the limit";
        return clock_.now().steady - begin;
      }
      clock_.advance(std::max<Duration>(next - clock_.now().steady, milliseconds{1}));
    }
  }
  // Lets time pass, stepping when asked to.
  void wait_quietly(Duration time) {
    const SteadyTime end = clock_.now().steady + time;
    for (SteadyTime next = step(); next < end; next = step()) {
      clock_.advance(std::max<Duration>(next - clock_.now().steady, milliseconds{1}));
    }
    clock_.advance(end - clock_.now().steady);
    step();
  }
  // Whether one of the descriptors to wait for is readable.
  bool wakes() const {
    std::vector<pollfd> entries;
    for (const int fd : facts_->wake_fds()) {
      if (fd != kCommandFd) {
        entries.push_back({fd, POLLIN, 0});
      }
    }
    return ::poll(entries.data(), entries.size(), 0) > 0;
  }

  void slurmd_starts(std::vector<std::string> options = {}) {
    slurmd_ = std::make_unique<Child>();
    options.insert(options.begin(), "/usr/sbin/slurmd");
    add_process(tree_, {slurmd_->pid(), "slurmd", options});
    tree_.file("run/slurmd.pid", std::to_string(slurmd_->pid()) + "\n");
  }
  // As by kill -9: the pidfile stays.
  void slurmd_dies() {
    tree_.remove("proc/" + std::to_string(slurmd_->pid()));
    slurmd_.reset();
  }
  void job_starts(const std::string& spool, int job, int pid) {
    add_process(tree_, {pid, "slurmstepd", {fmt::format("slurmstepd: [{}.0]", job)}});
    tree_.file(fmt::format("{}/nid1_{}.0", spool, job), "");
  }
  void set_memory_available(const std::string& kib) {
    tree_.file("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n" +
                                   ("MemAvailable:    " + kib + " kB\n"));
  }

  node::HostFacts facts() const { return facts_->facts(clock_.now()); }
  Liveness liveness() const { return facts().slurmd.liveness; }
  int jobs() const { return facts().jobs ? facts().jobs->jobs : -1; }
  bool grace_over() const { return facts_->circumstances(clock_.now()).slurmd_grace_over; }
  std::size_t new_questions() const { return sinfo_.started.size() - questions_; }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  slurm::FakeProgram sinfo_;
  slurm::FakeProgram version_;
  FactsOptions options_;
  slurm::PollSettings poll_;
  SlurmSetup conf_;  // what slurm.conf says
  std::optional<node::Metal3Facts> metal3_;
  std::vector<std::string> discovered_;  // NAME of slurmd's -N at each reading of slurm.conf
  std::size_t questions_ = 0;
  std::unique_ptr<Child> slurmd_;
  std::unique_ptr<FactsSync> facts_;
};

// --- the machine

TEST_F(FactsSyncTest, TheMachineIsKnownFromTheStart) {
  metal3_ = node::Metal3Facts{};
  metal3_->uuid = "u1";
  make();
  EXPECT_EQ(facts().machine.machine_id, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(facts().machine.memory_bytes, 16000000LL * 1024);
  EXPECT_EQ(facts().metal3, metal3_);
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  EXPECT_EQ(liveness(), Liveness::kUnknown) << "not looked for yet";
  EXPECT_TRUE(grace_over());
}

TEST_F(FactsSyncTest, PressuresComeWithTheFirstStep) {
  make();
  EXPECT_FALSE(facts().machine.memory_pressure);
  step();
  ASSERT_TRUE(facts().machine.memory_pressure);
  EXPECT_FALSE(facts().machine.memory_pressure->under_pressure);
  EXPECT_TRUE(facts().machine.disk_pressure);
  EXPECT_TRUE(facts().machine.pid_pressure);
}

TEST_F(FactsSyncTest, TheMachineIsReadAgainEachReportIntervalAndKeepsItsPressures) {
  options_.tick = hours{24};  // no new sample meanwhile
  start();
  const auto pressure = facts().machine.memory_pressure;
  tree_.file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  wait_quietly(options_.machine_interval - seconds{1});
  EXPECT_EQ(facts().machine.machine_id.front(), '0');
  wait_quietly(seconds{1});
  EXPECT_EQ(facts().machine.machine_id.front(), 'f');
  ASSERT_TRUE(pressure);
  EXPECT_EQ(facts().machine.memory_pressure, pressure);
}

TEST_F(FactsSyncTest, TicksFallOnMultiplesOfTheWallClock) {
  conf_.node_name = "";  // nothing to ask for: only the tick is left
  clock_.advance(milliseconds{3300});
  start();
  step();
  wait_quietly(seconds{1});  // the jobs' first look is over
  set_memory_available("50000");
  const SteadyTime tick = step();
  EXPECT_EQ(tick - clock_.now().steady, milliseconds{5700});
  EXPECT_FALSE(facts().machine.memory_pressure->under_pressure);
  clock_.advance(milliseconds{5700});
  EXPECT_EQ(step() - clock_.now().steady, seconds{10});
  EXPECT_TRUE(facts().machine.memory_pressure->under_pressure);
}

// Not that of the slurmd watch.
TEST_F(FactsSyncTest, TheTickHasItsOwnPeriod) {
  conf_.node_name = "";
  options_.tick = seconds{4};
  clock_.advance(milliseconds{3300});
  start();
  wait_quietly(milliseconds{4000});  // 7.3
  EXPECT_EQ(step() - clock_.now().steady, milliseconds{700});
}

TEST_F(FactsSyncTest, AQuietMachineWakesAtTicksOnly) {
  slurmd_starts();
  start_and_answer();
  int steps = 0;
  EXPECT_GE(run_until([&] { return ++steps > 6; }, minutes{2}), seconds{50});
}

// --- slurmctld

TEST_F(FactsSyncTest, BeforeTheFirstAnswerNothingIsSaid) {
  start();
  EXPECT_EQ(facts().slurm, node::SlurmAnswer{});
  EXPECT_EQ(node::slurm_view(facts()).reason, "NotAskedYet");
}

TEST_F(FactsSyncTest, TheAnswerIsTakenOver) {
  slurmd_starts();
  start();
  run_until([this] { return !sinfo_.started.empty(); }, seconds{3});
  EXPECT_EQ(sinfo_.started[0].argv[5], "nid1");
  EXPECT_THAT(facts_->wake_fds(), Contains(kCommandFd)) << "the end of sinfo is waited for";
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
  clock_.advance(minutes{5});
  EXPECT_TRUE(facts().slurm.stale);
}

// --- slurmd

TEST_F(FactsSyncTest, ASlurmdThatIsThereIsSeenAtOnce) {
  slurmd_starts();
  start();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
  EXPECT_EQ(facts().slurmd.version, "22.05.8");
  EXPECT_TRUE(grace_over());
}

TEST_F(FactsSyncTest, ASlurmdThatDiesHasItsGraceAndItsEndIsAWakeUp) {
  slurmd_starts();
  clock_.advance(milliseconds{3300});
  start_and_answer();
  EXPECT_FALSE(wakes());
  slurmd_dies();
  EXPECT_TRUE(wakes());
  step();
  answer();  // so that the end of sinfo is no wake-up
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  EXPECT_FALSE(grace_over());
  EXPECT_EQ(run_until([this] { return grace_over(); }, minutes{1}), seconds{15});
  EXPECT_EQ(liveness(), Liveness::kAbsent);
}

TEST_F(FactsSyncTest, TheEndOfTheGraceDoesNotKeepTheLoopAwake) {
  conf_.node_name = "";
  slurmd_starts();
  start();
  slurmd_dies();
  wait_quietly(seconds{15});
  ASSERT_TRUE(grace_over());
  EXPECT_GT(step(), clock_.now().steady + seconds{1});
}

TEST_F(FactsSyncTest, ASlurmdThatWasNeverThereHasNoGrace) {
  start();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  EXPECT_TRUE(grace_over());
  wait_quietly(minutes{1});
  EXPECT_TRUE(grace_over());
}

TEST_F(FactsSyncTest, EachDeathHasAGraceOfItsOwn) {
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
  EXPECT_EQ(run_until([this] { return grace_over(); }, minutes{1}), seconds{15});
}

TEST_F(FactsSyncTest, AStoppedSlurmdHasAGraceToo) {
  slurmd_starts();
  start();
  add_process(tree_, {slurmd_->pid(), "slurmd", {"/usr/sbin/slurmd"}, 'T'});
  run_until([this] { return liveness() == Liveness::kStopped; }, seconds{10});
  EXPECT_FALSE(grace_over());
  EXPECT_EQ(run_until([this] { return grace_over(); }, minutes{1}), seconds{15});
}

// Since Slurm 23.11 a reconfigure replaces the process.
TEST_F(FactsSyncTest, AReplacedSlurmdIsNoDeath) {
  slurmd_starts();
  start();
  const auto old = std::move(slurmd_);
  slurmd_starts();
  ::kill(old->pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(old->pid()), &info, WEXITED | WNOWAIT), 0);
  tree_.remove("proc/" + std::to_string(old->pid()));
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(facts().slurmd.pid, slurmd_->pid());
  EXPECT_TRUE(grace_over());
  EXPECT_EQ(discovered_.size(), 3U) << "at the start, for the first slurmd, for its successor";
}

TEST_F(FactsSyncTest, DeathAndBirthOfSlurmdAreAskedAboutSoon) {
  slurmd_starts();
  start_and_answer();
  slurmd_dies();
  step();
  ASSERT_EQ(new_questions(), 1U);
  answer();
  wait_quietly(minutes{1});
  EXPECT_EQ(new_questions(), 1U);
  slurmd_starts();
  step();
  EXPECT_EQ(new_questions(), 2U);
}

// --- slurm.conf

TEST_F(FactsSyncTest, SlurmConfIsReadOnceMoreForEachSlurmd) {
  make();
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

TEST_F(FactsSyncTest, AnotherNodeNameIsAskedAboutAndTheOldAnswerForgotten) {
  slurmd_starts();
  start_and_answer();
  ASSERT_TRUE(facts().slurm.record);
  ASSERT_EQ(facts().slurm.record->name, "nid1");
  slurmd_dies();
  step();
  answer();
  questions_ = sinfo_.started.size();
  slurmd_starts({"-N", "nid7"});
  step();
  EXPECT_FALSE(facts().slurm.record);
  run_until([this] { return new_questions() > 0; }, seconds{3});
  EXPECT_EQ(sinfo_.started.back().argv[5], "nid7");
  answer();
  ASSERT_TRUE(facts().slurm.record);
  EXPECT_EQ(facts().slurm.record->name, "nid7");
  EXPECT_EQ(liveness(), Liveness::kRunning);
}

TEST_F(FactsSyncTest, AnAnswerAboutTheOldNameDoesNotCount) {
  slurmd_starts();
  start();
  run_until([this] { return !sinfo_.started.empty(); }, seconds{3});
  slurmd_dies();
  step();
  slurmd_starts({"-N", "nid7"});
  step();
  answer();
  EXPECT_FALSE(facts().slurm.record);
}

TEST_F(FactsSyncTest, ANewSpoolDirectoryIsLookedInto) {
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

TEST_F(FactsSyncTest, AnUnreadableSlurmConfIsReadOnceItsSlurmdRuns) {
  const SlurmSetup good = conf_;
  conf_.node_name = "";
  conf_.conf = {};
  conf_.problem = "there is none";
  start();
  wait_quietly(minutes{1});
  EXPECT_TRUE(sinfo_.started.empty());
  EXPECT_EQ(facts().slurm_conf.cluster_name, "");
  conf_ = good;
  slurmd_starts();
  step();
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  run_until([this] { return !sinfo_.started.empty(); }, seconds{3});
  EXPECT_EQ(sinfo_.started[0].argv[5], "nid1");
}

// --- jobs

TEST_F(FactsSyncTest, JobsAreKnownFromTheFirstStep) {
  job_starts("spool", 9, 900);
  start();
  EXPECT_EQ(jobs(), 1);
}

TEST_F(FactsSyncTest, WithoutASpoolDirectoryJobsAreUnknown) {
  tree_.remove("spool");
  start();
  EXPECT_FALSE(facts().jobs);
}

TEST_F(FactsSyncTest, AJobEventAsksAtOnceAndCountsTheJobsALittleLater) {
  slurmd_starts();
  start_and_answer();
  job_starts("spool", 9, 900);
  EXPECT_TRUE(wakes());
  const SteadyTime look = step();
  EXPECT_EQ(new_questions(), 1U);
  EXPECT_EQ(jobs(), 0) << "the step's process may not have its title yet";
  EXPECT_EQ(look - clock_.now().steady, milliseconds{500});
  clock_.advance(milliseconds{500});
  step();
  EXPECT_EQ(jobs(), 1);
}

// Else a machine on which steps start all the time would never look.
TEST_F(FactsSyncTest, FurtherJobEventsDoNotPutTheLookOff) {
  slurmd_starts();
  start_and_answer();
  job_starts("spool", 9, 900);
  step();
  clock_.advance(milliseconds{400});
  job_starts("spool", 10, 1000);
  EXPECT_EQ(step() - clock_.now().steady, milliseconds{100});
}

TEST_F(FactsSyncTest, ManyJobEventsStayWithinTheRateOfQuestions) {
  slurmd_starts();
  start_and_answer();
  for (int job = 1; job <= 100; ++job) {
    job_starts("spool", job, 1000 + job);
    step();
    if (sinfo_.running) {
      answer();
    }
    wait_quietly(milliseconds{100});
  }
  EXPECT_LE(new_questions(), 3U) << "one each five seconds";
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
  tree_.file("spool/job00001", "");  // makes it ask
  step();
  ASSERT_EQ(new_questions(), 1U);
  EXPECT_EQ(jobs(), 0);
  answer();
  EXPECT_EQ(jobs(), 1);
}

}  // namespace
}  // namespace slurmlet::sync
