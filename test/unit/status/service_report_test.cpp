#include "status/service_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "fakes/fake_clock.h"
#include "fakes/service_manager.h"
#include "fakes/temp_tree.h"

namespace slurmlet::status {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServiceReportTest : public ::testing::Test {
 protected:
  ServiceReportTest() {
    report_.node_name = "n1";
    report_.registered = true;
    report_.ready = {"Ready", "True", "SlurmdRunning", ""};
    report_.facts.slurmd.liveness = node::SlurmdFacts::Liveness::kRunning;
    state("IDLE");
    lease_.renewed_at = now().wall;
  }

  Notifier notifier() const {
    auto out = Notifier::open(tree_.path("notify").string());
    EXPECT_TRUE(out);
    return std::move(*out);
  }
  Now now() const { return clock_.now(); }
  void state(const std::string& base) {
    report_.facts.slurm.record.emplace();
    report_.facts.slurm.record->state = {base, {}};
  }
  // A step of a loop that takes no time.
  void step(Loop loop, Duration pause) {
    service_.works(loop, now());
    service_.sleeps(loop, now(), now().steady + pause, report_, lease_);
  }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  fakes::ServiceManager manager_{tree_.path("notify").string()};
  ServiceReport service_{notifier(), seconds{60}};
  Report report_;
  sync::LeaseStatus lease_;
};

TEST_F(ServiceReportTest, SendsReadyOnceBeforeAnyReport) {
  service_.ready(now());
  service_.ready(now());
  EXPECT_EQ(manager_.take(), "READY=1\n");
  EXPECT_EQ(manager_.take(), "");
}

TEST_F(ServiceReportTest, APingHasTheLine) {
  service_.ready(now());
  manager_.take();
  step(Loop::kMain, seconds{30});
  EXPECT_EQ(manager_.take(), "WATCHDOG=1\nSTATUS=n1: Ready, Slurm IDLE, lease renewed 14:00:00Z\n");
}

TEST_F(ServiceReportTest, ARenewalIsOnlySentWithPings) {
  step(Loop::kLease, seconds{10});
  EXPECT_THAT(manager_.take(), HasSubstr("14:00:00Z"));
  for (int i = 0; i < 2; ++i) {
    clock_.advance(seconds{10});
    lease_.renewed_at = now().wall;
    step(Loop::kLease, seconds{10});
    EXPECT_EQ(manager_.take(), "");
  }
  clock_.advance(seconds{10});
  lease_.renewed_at = now().wall;
  step(Loop::kLease, seconds{10});
  EXPECT_THAT(manager_.take(), HasSubstr("14:00:30Z"));
}

TEST_F(ServiceReportTest, ChangesAreSentAtOnceButThreeTimesAMinuteAtMost) {
  step(Loop::kMain, seconds{1});
  EXPECT_THAT(manager_.take(), HasSubstr("Slurm IDLE"));
  const char* const kStates[] = {"MIXED", "ALLOCATED", "DOWN", "FUTURE"};
  int sent = 0;
  for (const char* base : kStates) {
    clock_.advance(seconds{1});
    state(base);
    step(Loop::kMain, seconds{1});
    sent += manager_.take().empty() ? 0 : 1;
  }
  EXPECT_EQ(sent, 2) << "and the first line before them";
  clock_.advance(minutes{1});
  step(Loop::kMain, seconds{1});
  EXPECT_THAT(manager_.take(), HasSubstr("Slurm FUTURE")) << "the newest, when there is room again";
  clock_.advance(seconds{1});
  step(Loop::kMain, seconds{1});
  EXPECT_EQ(manager_.take(), "");
}

TEST_F(ServiceReportTest, AHangingLoopEndsThePingsButNotTheChanges) {
  service_.works(Loop::kLease, now());
  clock_.advance(minutes{5});
  step(Loop::kMain, seconds{30});
  EXPECT_THAT(manager_.take(), StartsWith("STATUS=n1: Ready"));
  clock_.advance(minutes{5});
  step(Loop::kMain, seconds{30});
  EXPECT_EQ(manager_.take(), "") << "neither a ping nor a change";
  step(Loop::kLease, seconds{10});
  EXPECT_THAT(manager_.take(), StartsWith("WATCHDOG=1\n"));
}

TEST_F(ServiceReportTest, ReportsTheEnd) {
  service_.stopping();
  EXPECT_EQ(manager_.take(), "STOPPING=1\n");
  service_.failing("/etc/slurmlet/config.yaml:3:1: unknown key\nand more");
  EXPECT_EQ(manager_.take(), "STATUS=/etc/slurmlet/config.yaml:3:1: unknown key\n");
}

TEST_F(ServiceReportTest, WithoutAWatchdogTheLineIsStillSent) {
  ServiceReport unwatched{notifier(), std::nullopt};
  unwatched.sleeps(Loop::kMain, now(), now().steady + seconds{30}, report_, lease_);
  EXPECT_EQ(manager_.take(), "STATUS=n1: Ready, Slurm IDLE, lease renewed\n")
      << "no time, which would stand still";
}

// Ten calls to a slow API server, one after the other.
TEST_F(ServiceReportTest, ALongStepPingsBetweenItsParts) {
  service_.ready(now());
  manager_.take();
  for (const bool due : {false, false, true, false, false, true}) {
    clock_.advance(seconds{15});
    service_.works(Loop::kMain, now());
    EXPECT_EQ(manager_.take(), due ? "WATCHDOG=1\n" : "");
  }
  service_.works(Loop::kLease, now());
  clock_.advance(seconds{44});
  service_.works(Loop::kMain, now());
  EXPECT_EQ(manager_.take(), "WATCHDOG=1\n");
  clock_.advance(seconds{44});
  service_.works(Loop::kMain, now());
  EXPECT_EQ(manager_.take(), "") << "the other loop hangs";
}

TEST_F(ServiceReportTest, ResendsWhatTheManagerDidNotAccept) {
  ASSERT_TRUE(std::filesystem::remove(tree_.path("notify")));
  service_.ready(now());
  step(Loop::kMain, seconds{1});
  const fakes::ServiceManager back{tree_.path("notify").string()};
  clock_.advance(seconds{1});
  step(Loop::kMain, seconds{1});
  EXPECT_EQ(back.take(),
            "READY=1\nWATCHDOG=1\nSTATUS=n1: Ready, Slurm IDLE, lease renewed 14:00:00Z\n");
  clock_.advance(seconds{1});
  step(Loop::kMain, seconds{1});
  EXPECT_EQ(back.take(), "");
}

// Makes stderr a pipe that nobody reads.
class StuckStderr {
 public:
  StuckStderr() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK), 0);
    while (::write(pipe_[1], "x", 1) == 1) {
    }
    ::fcntl(pipe_[1], F_SETFL, 0);
    ::dup2(pipe_[1], STDERR_FILENO);
  }
  ~StuckStderr() {
    ::dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, pipe_[0], pipe_[1]}) {
      ::close(fd);
    }
  }
  void read() const {
    char byte[4096];
    while (::read(pipe_[0], byte, sizeof byte) > 0) {
    }
  }

 private:
  int before_;
  int pipe_[2] = {-1, -1};
};

// journald may be slow, but the Lease must be renewed in time.
TEST_F(ServiceReportTest, NobodyWaitsForTheLog) {
  std::filesystem::remove(tree_.path("notify"));  // makes sending fail, which is logged
  const StuckStderr log;
  auto main = std::async(std::launch::async, [&] { service_.ready(now()); });
  EXPECT_EQ(main.wait_for(seconds{10}), std::future_status::ready);
  log.read();
}

}  // namespace
}  // namespace slurmlet::status
