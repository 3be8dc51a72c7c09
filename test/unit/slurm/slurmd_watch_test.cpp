#include "slurm/local/slurmd_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "fake_runner.h"
#include "fakes/child_process.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "slurm/local/proc.h"

namespace slurmlet::slurm {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A real process whose name is "slurmd", ended and reaped by the test.
class Child : public fakes::SleepingChild {
 public:
  explicit Child(const std::string& program) : SleepingChild(program) {
    // The kernel lets posix_spawn() return before the new name and arguments are in place.
    while (pid_ > 0 &&
           (process_name("/proc", pid_) != "slurmd" || process_arguments("/proc", pid_).empty())) {
      ::sched_yield();
    }
  }
};

class SlurmdWatchTest : public testing::Test {
 protected:
  SlurmdWatchTest() {
    tree_.dir("run").dir("spool").dir("cgroup/system.slice");
    std::filesystem::copy_file("/bin/sleep", tree_.path("slurmd"));
    settings_.places.pid_file = tree_.path("run/slurmd.pid");
    settings_.places.cgroup_root = tree_.path("cgroup");
    // Other slurmd of this machine, if any, name their own slurm.conf or none at all; the name of
    // this unit test's node keeps those with -N apart, the fake proc root all others.
    settings_.places.proc_root = tree_.path("proc");
    settings_.identity.node_name = "nid-of-this-test";
    settings_.spool_dir = tree_.path("spool");
    tree_.dir("proc").dir("pids");
    settings_.places.users = {{::geteuid()}, {::getgid()}};
    settings_.places.pid_pattern = tree_.path("pids/%n.pid");  // nobody watches that directory
    settings_.patience = std::chrono::minutes{1};              // a busy machine
  }
  // Looks for the first time; `slurmd -V` has ended and the watches for a birth are gone.
  void make() {
    watch_ = std::make_unique<SlurmdWatch>(settings_, std::make_unique<FakeRunner>(program_));
    step();
    print_version("slurm-wlm 22.05.8\n");
  }
  void print_version(const std::string& text) {
    program_.end = CommandOutput{};
    program_.end->out = text;
    step();
  }
  std::unique_ptr<Child> run() {
    auto child = std::make_unique<Child>(tree_.path("slurmd"));
    show(child->pid());
    return child;
  }
  // Only processes of this test are in its /proc: links to the real ones.
  void show(int pid) {
    tree_.file("pids/" + std::to_string(pid) + ".pid", std::to_string(pid));
    tree_.remove("proc/" + std::to_string(pid));
    tree_.symlink("/proc/" + std::to_string(pid), "proc/" + std::to_string(pid));
  }
  void write_pid_file(int pid) { tree_.file("run/slurmd.pid", std::to_string(pid) + "\n"); }
  SteadyTime step() { return watch_->step(clock_.now()); }
  Liveness liveness() const { return watch_->facts().liveness; }
  bool wakes(milliseconds limit = seconds{5}) const {
    std::vector<pollfd> entries;
    for (const int fd : watch_->wake_fds()) {
      if (fd != 77) {  // the fake program's
        entries.push_back({fd, POLLIN, 0});
      }
    }
    return ::poll(entries.data(), entries.size(), static_cast<int>(limit.count())) > 0;
  }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  FakeProgram program_;
  SlurmdWatchSettings settings_;
  std::unique_ptr<SlurmdWatch> watch_;
};

TEST_F(SlurmdWatchTest, UnknownBeforeTheFirstLook) {
  const SlurmdWatch watch{settings_, std::make_unique<FakeRunner>(program_)};
  EXPECT_EQ(watch.facts().liveness, Liveness::kUnknown);
  EXPECT_NE(watch.facts().detail, "");
}

TEST_F(SlurmdWatchTest, SeesARunningSlurmdAtOnce) {
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(watch_->facts().pid, slurmd->pid());
}

TEST_F(SlurmdWatchTest, DeathWakesAndBirthWakes) {
  auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  ASSERT_EQ(liveness(), Liveness::kRunning);
  EXPECT_FALSE(wakes(milliseconds{0})) << "quiet while nothing happens";

  slurmd->signal(SIGKILL);
  EXPECT_TRUE(wakes()) << "the pidfd of a killed process is readable";
  step();
  EXPECT_EQ(liveness(), Liveness::kAbsent) << "the pidfile is still there, the process a zombie";
  EXPECT_EQ(watch_->facts().pid, 0);
  slurmd->kill();
  step();
  EXPECT_EQ(liveness(), Liveness::kAbsent);

  slurmd = run();
  write_pid_file(slurmd->pid());
  EXPECT_TRUE(wakes()) << "inotify on the directory of the pidfile";
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(watch_->facts().pid, slurmd->pid());
}

TEST_F(SlurmdWatchTest, AReplacedProcessIsNoCrash) {
  const auto old = run();
  write_pid_file(old->pid());
  make();
  const auto successor = run();
  write_pid_file(successor->pid());
  old->kill();
  EXPECT_TRUE(wakes());
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(watch_->facts().pid, successor->pid());
}

TEST_F(SlurmdWatchTest, BusyDirectoriesAreNotWatchedWhileItRuns) {
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  step();
  tree_.file("run/something-else", "x");
  tree_.dir("cgroup/system.slice/other.service");
  // Leftovers of the watches that were just removed may wake once.
  step();
  EXPECT_FALSE(wakes(milliseconds{0}));
}

TEST_F(SlurmdWatchTest, AUnitWithoutAPidfileIsSeenSoonAfterItsCgroup) {
  make();
  ASSERT_EQ(liveness(), Liveness::kAbsent);
  tree_.dir("cgroup/system.slice/slurmd.service");
  EXPECT_TRUE(wakes());
  const auto again = step();
  EXPECT_EQ(liveness(), Liveness::kAbsent) << "systemd has not run it yet";
  EXPECT_LE(again - clock_.now().steady, milliseconds{50});
  const auto slurmd = run();
  clock_.advance(again - clock_.now().steady);
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
}

TEST_F(SlurmdWatchTest, SafetyRescanWhileAbsent) {
  make();
  const auto slurmd = run();  // no event at all
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  const auto wake = step();
  EXPECT_LE(wake - clock_.now().steady, seconds{10});
  clock_.advance(wake - clock_.now().steady);
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
}

TEST_F(SlurmdWatchTest, AbsentIsQuietBetweenRescans) {
  make();
  int steps = 0;
  const auto end = clock_.now().steady + seconds{100};
  while (clock_.now().steady < end) {
    clock_.advance(std::max<Duration>(step() - clock_.now().steady, milliseconds{1}));
    ++steps;
  }
  EXPECT_LE(steps, 12);
}

TEST_F(SlurmdWatchTest, AStoppedSlurmdIsSeenAtTheNextLookAndSoonerWhenItGoesOn) {
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  slurmd->signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(slurmd->pid(), &status, WUNTRACED), slurmd->pid());
  auto wake = step();
  EXPECT_LE(wake - clock_.now().steady, seconds{30});
  clock_.advance(wake - clock_.now().steady);
  step();
  EXPECT_EQ(liveness(), Liveness::kStopped);
  EXPECT_EQ(watch_->facts().pid, slurmd->pid());

  slurmd->signal(SIGCONT);
  ASSERT_EQ(::waitpid(slurmd->pid(), &status, WCONTINUED), slurmd->pid());
  wake = step();
  EXPECT_LE(wake - clock_.now().steady, seconds{10});
  clock_.advance(wake - clock_.now().steady);
  wake = step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_GT(wake - clock_.now().steady, seconds{10});
}

TEST_F(SlurmdWatchTest, LooksFallOnMultiplesOfTheWallClock) {
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  clock_.advance(milliseconds{3300});
  make();
  const auto wake = step();
  const auto wall = clock_.now().wall.time_since_epoch() + (wake - clock_.now().steady);
  EXPECT_EQ((wall % seconds{30}).count(), 0);
  EXPECT_GT(wake, clock_.now().steady);
  EXPECT_LE(wake - clock_.now().steady, seconds{30});
}

TEST_F(SlurmdWatchTest, JobsInTheSpoolDirectoryAreEvents) {
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  EXPECT_TRUE(watch_->take_job_event()) << "the first look is one";
  EXPECT_FALSE(watch_->take_job_event());

  tree_.file("spool/cred_state.new", "");
  step();
  EXPECT_FALSE(watch_->take_job_event());
  tree_.file("spool/nid1_9.0", "");
  EXPECT_TRUE(wakes());
  step();
  EXPECT_TRUE(watch_->take_job_event());
  tree_.remove("spool/nid1_9.0");
  EXPECT_TRUE(wakes());
  step();
  EXPECT_TRUE(watch_->take_job_event());
}

TEST_F(SlurmdWatchTest, ASpoolDirectoryMadeLaterIsWatched) {
  tree_.remove("spool");
  make();
  EXPECT_FALSE(watch_->take_job_event());
  tree_.dir("spool");
  clock_.advance(seconds{30});
  step();
  EXPECT_TRUE(watch_->take_job_event());
  tree_.remove("spool");
  EXPECT_TRUE(wakes());
  step();
  tree_.dir("spool").file("spool/nid1_9.0", "");
  clock_.advance(seconds{30});
  step();
  EXPECT_TRUE(watch_->take_job_event());
}

// Each look is a thread.
TEST_F(SlurmdWatchTest, AMissingSpoolDirectoryIsNotLookedForAtEachWakeUp) {
  tree_.remove("spool");
  make();
  tree_.dir("spool");
  step();
  EXPECT_FALSE(watch_->take_job_event());
  clock_.advance(settings_.rescan);
  step();
  EXPECT_TRUE(watch_->take_job_event());
}

TEST_F(SlurmdWatchTest, ANewSlurmdsSpoolDirectoryIsLookedForAtOnce) {
  tree_.remove("spool");
  make();
  const auto slurmd = run();
  write_pid_file(slurmd->pid());
  step();
  tree_.dir("spool");
  step();
  EXPECT_TRUE(watch_->take_job_event());
}

TEST_F(SlurmdWatchTest, LearnsTheVersionAgainForANewProcess) {
  auto slurmd = run();
  write_pid_file(slurmd->pid());
  make();
  ASSERT_EQ(program_.started.size(), 1U);
  EXPECT_EQ(program_.started[0].argv.back(), "-V");
  EXPECT_EQ(watch_->facts().version, "22.05.8");

  slurmd->kill();
  step();
  EXPECT_EQ(watch_->facts().version, "22.05.8") << "what is installed";
  slurmd = run();
  write_pid_file(slurmd->pid());
  step();
  ASSERT_EQ(program_.started.size(), 2U);
  print_version("slurm 25.11.0\n");
  EXPECT_EQ(watch_->facts().version, "25.11.0");
}

TEST_F(SlurmdWatchTest, AHiddenProcessIsUnknownNotAbsent) {
  const Child slurmd{tree_.path("slurmd")};  // runs, but its /proc entry is not shown
  write_pid_file(slurmd.pid());
  make();
  EXPECT_EQ(liveness(), Liveness::kUnknown);
  EXPECT_NE(watch_->facts().detail.find("hidepid"), std::string::npos);
}

TEST_F(SlurmdWatchTest, WithoutProcNothingIsKnown) {
  tree_.remove("proc");
  make();
  EXPECT_EQ(liveness(), Liveness::kUnknown);
  EXPECT_NE(watch_->facts().detail, "");
}

TEST_F(SlurmdWatchTest, ReconfigureSearchesAtTheNewPlaces) {
  make();
  EXPECT_EQ(liveness(), Liveness::kAbsent);
  const auto slurmd = run();
  tree_.file("elsewhere/slurmd.pid", std::to_string(slurmd->pid()));
  settings_.places.pid_file = tree_.path("elsewhere/slurmd.pid");
  watch_->reconfigure(settings_);
  step();
  EXPECT_EQ(liveness(), Liveness::kRunning);
}

}  // namespace
}  // namespace slurmlet::slurm
