#include "daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <memory>

#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;
using ::testing::IsEmpty;

class ReloadTest : public ::testing::Test {
 protected:
  ReloadTest() : signals_(*Signals::open()) {
    fakes::let_side_calls_end();
    settings_.node.name = "n1";
    settings_.state_dir = tree_.root().string();
    settings_.metal3.instance_data = tree_.path("instance-data.json").string();
    reload_.emplace(
        [loads = loads_]() -> Result<config::Settings> {
          touches_file("/shared/config.yaml");
          return *loads;
        },
        service_);
  }

  // How many hang counts for the process: no test begins beside what another one left.
  ~ReloadTest() override { fakes::let_side_calls_end(); }

  static void send(int signal) { ASSERT_EQ(::pthread_kill(::pthread_self(), signal), 0); }
  std::optional<Outcome> outcome() { return reload_->outcome(signals_, {now_, {}}); }
  // Once there is nothing more to read.
  std::optional<Outcome> outcome_of_reading() {
    auto found = outcome();
    while (!found && reload_->fd() >= 0) {
      pollfd ready{reload_->fd(), POLLIN, 0};
      if (::poll(&ready, 1, 60'000) != 1) {
        ADD_FAILURE() << "the configuration is not read";
        break;
      }
      found = outcome();
    }
    return found;
  }
  void load(const std::string& slurm_node) {
    settings_.slurm.node_name = slurm_node;
    *loads_ = settings_;
  }

  fakes::TempTree tree_;
  Signals signals_;
  status::ServiceReport service_{status::Notifier{}, std::nullopt};
  config::Settings settings_;
  // Its readers may outlive the test.
  std::shared_ptr<Result<config::Settings>> loads_ =
      std::make_shared<Result<config::Settings>>(Error{Code::kInvalid, "never loaded"});
  SteadyTime now_{std::chrono::hours{1}};
  std::optional<Reload> reload_;
};

TEST_F(ReloadTest, EndsTheLifeOnceTheConfigurationIsThere) {
  EXPECT_EQ(outcome(), std::nullopt);
  EXPECT_EQ(reload_->fd(), -1);
  load("nid1");
  send(SIGHUP);
  fakes::HangingFile file{"/shared/config.yaml"};
  EXPECT_EQ(outcome(), std::nullopt) << "the life goes on meanwhile";
  EXPECT_FALSE(service_.is_ready());
  file.answer();
  EXPECT_EQ(outcome_of_reading(), Outcome::kReload);
  EXPECT_EQ(reload_->take().slurm.node_name, "nid1");
  EXPECT_EQ(outcome(), std::nullopt);
}

TEST_F(ReloadTest, WhatIsWrongEndsNoLife) {
  *loads_ = Error{Code::kInvalid, "/etc/slurmlet/config.yaml:3: no such key\nanother"};
  send(SIGHUP);
  EXPECT_EQ(outcome_of_reading(), std::nullopt);
  EXPECT_TRUE(service_.is_ready());
  settings_.node.name = "Not_A_Name";
  load("nid1");
  send(SIGHUP);
  EXPECT_EQ(outcome_of_reading(), std::nullopt) << "of the node's identity";
}

TEST_F(ReloadTest, WaitsForAFileThatDoesNotAnswerAndSaysSo) {
  load("nid1");
  for (const std::string& path :
       {std::string{"/shared/config.yaml"}, settings_.state_dir, settings_.metal3.instance_data}) {
    fakes::HangingFile file{path};
    send(SIGHUP);
    EXPECT_EQ(outcome(), std::nullopt);
    file.wait();
    EXPECT_EQ(reload_->due(now_), now_ + seconds{2});
    EXPECT_THAT(reload_->waits(), IsEmpty());
    now_ += seconds{2};
    EXPECT_EQ(outcome(), std::nullopt);
    EXPECT_EQ(reload_->waits(), path + " did not answer for 2 s");
    EXPECT_TRUE(service_.is_ready()) << "the service manager does not wait for it";
    EXPECT_EQ(reload_->due(now_), kNever);
    load("nid" + path);
    file.answer();
    EXPECT_EQ(outcome_of_reading(), Outcome::kReload);
    EXPECT_THAT(reload_->waits(), IsEmpty());
    EXPECT_FALSE(service_.is_ready());
    EXPECT_EQ(reload_->take().slurm.node_name, "nid" + path) << "as it is by now";
  }
}

TEST_F(ReloadTest, AnotherSignalReadsAnotherConfiguration) {
  load("old");
  fakes::HangingFile file{settings_.state_dir};
  send(SIGHUP);
  EXPECT_EQ(outcome(), std::nullopt);
  file.wait();
  settings_.state_dir = tree_.path("elsewhere").string();
  load("new");
  send(SIGHUP);
  EXPECT_EQ(outcome_of_reading(), Outcome::kReload);
  EXPECT_EQ(reload_->take().slurm.node_name, "new");
  file.answer();
  EXPECT_EQ(outcome(), std::nullopt) << "what was given up does not come back";
}

TEST_F(ReloadTest, AnEndWaitsForNoFile) {
  load("nid1");
  fakes::HangingFile file{settings_.state_dir};
  send(SIGHUP);
  EXPECT_EQ(outcome(), std::nullopt);
  send(SIGTERM);
  EXPECT_EQ(outcome(), Outcome::kStopped);
}

// That a reload is under way must be known when its configuration proves to be of no use.
TEST_F(ReloadTest, IsUnderWayWhateverWasSaidMeanwhile) {
  load("nid1");
  fakes::HangingFile file{settings_.state_dir};
  send(SIGHUP);
  EXPECT_EQ(outcome(), std::nullopt);
  service_.ready({now_, {}});  // another life begins, with the old configuration
  file.answer();
  EXPECT_EQ(outcome_of_reading(), Outcome::kReload);
  EXPECT_FALSE(service_.is_ready());
}

// What hangs holds a thread, and the life that runs needs some.
TEST_F(ReloadTest, TooManyThatHangAreRefused) {
  load("nid1");
  fakes::HangingFile file{settings_.state_dir};
  for (int i = 0; side_calls_under_way() <= 16; ++i) {
    ASSERT_LT(i, 20);
    send(SIGHUP);
    EXPECT_EQ(outcome(), std::nullopt);
  }
  const int hanging = side_calls_under_way();
  send(SIGHUP);
  EXPECT_EQ(outcome(), std::nullopt);
  EXPECT_EQ(side_calls_under_way(), hanging);
  EXPECT_TRUE(service_.is_ready());
  file.answer();
  EXPECT_EQ(outcome_of_reading(), Outcome::kReload) << "of the last one that was begun";
}

}  // namespace
}  // namespace slurmlet::daemon
