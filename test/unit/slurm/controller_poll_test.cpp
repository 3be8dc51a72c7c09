// When slurmctld is queried, in time that the test lets pass. What a record changes in it:
// record_source_test.cpp.

#include "slurm/sources/controller_poll.h"

#include <gmock/gmock.h>

#include "fakes/fake_clock.h"
#include "scripted_source.h"

namespace slurmlet::slurm {
namespace controller_poll_test {

using node::SlurmFailure;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ControllerPollTest : public testing::Test {
 protected:
  void make(const PollSettings& settings, const std::string& node = "n1") {
    settings_ = settings;
    asked_.at.clear();
    poll_ = std::make_unique<ControllerPoll>(
        settings, PollSources{{}, std::make_unique<ScriptedSource>(asked_)}, [] { return 0.5; });
    poll_->set_node(node, SitePlace{node});
    began_ = clock_.now().steady;
  }
  void pass(Duration time) {
    clock_.run(time, [this] {
      return std::max(poll_->step(clock_.now()), clock_.now().steady + milliseconds{1});
    });
  }
  // Evidence at once, and each `gap` after that.
  void pass_with_evidence(Duration time, Duration gap) {
    for (const auto end = clock_.now().steady + time; clock_.now().steady < end;) {
      poll_->request_poll(clock_.now());
      pass(gap);
    }
  }
  Duration longest_gap() const {
    Duration longest = asked_.at.front() - began_;
    for (std::size_t i = 1; i < asked_.at.size(); ++i) {
      longest = std::max(longest, asked_.at[i] - asked_.at[i - 1]);
    }
    return longest;
  }
  Duration shortest_gap() const {
    Duration shortest = hours{24};
    for (std::size_t i = 1; i < asked_.at.size(); ++i) {
      shortest = std::min(shortest, asked_.at[i] - asked_.at[i - 1]);
    }
    return shortest;
  }
  node::SlurmAnswer answer() const { return poll_->answer(clock_.now()); }

  fakes::FakeClock clock_;
  AskedQueries asked_;
  PollSettings settings_;
  SteadyTime began_{};
  std::unique_ptr<ControllerPoll> poll_;
};

TEST_F(ControllerPollTest, QueriesOnceAnInterval) {
  for (const std::int64_t nodes : {10, 1000, 3000}) {
    make(poll_pace({}, nodes));
    pass(40 * settings_.interval);
    EXPECT_GE(asked_.at.size(), 40U);
    EXPECT_LE(asked_.at.size(), 43U) << "but for those that bring a node to its own time";
    EXPECT_LE(asked_.at.front() - began_, settings_.spread);
    EXPECT_LE(longest_gap(), settings_.interval + seconds{1});
    EXPECT_FALSE(answer().stale);
    EXPECT_EQ(answer().source, "scontrol");
    EXPECT_EQ(poll_->counters().queries, asked_.at.size());
    EXPECT_EQ(poll_->counters().failures, 0U);
  }
}

TEST_F(ControllerPollTest, EvidenceBringsTheNextQueryForward) {
  make(poll_pace({}, 1000));
  pass(settings_.interval + seconds{1});
  const auto before = asked_.at.size();
  pass(seconds{20});
  const auto evidence = clock_.now().steady;
  poll_->request_poll(clock_.now());
  pass(settings_.spread + seconds{1});
  ASSERT_EQ(asked_.at.size(), before + 1);
  EXPECT_LE(asked_.at.back() - evidence, settings_.spread);
}

// A node on which jobs come and go every second.
TEST_F(ControllerPollTest, EvidenceWithoutEndCostsAQuarterMore) {
  make(poll_pace({}, 10));
  pass(seconds{5});
  pass_with_evidence(hours{2}, seconds{1});
  const auto intervals = static_cast<std::size_t>(hours{2} / settings_.interval);
  EXPECT_LE(asked_.at.size(), intervals * 7 / 5 + 6);
  EXPECT_GE(shortest_gap(), seconds{15});
  EXPECT_LE(longest_gap(), settings_.interval + seconds{1});
}

TEST_F(ControllerPollTest, EachNodeComesToItsOwnTimeOfTheInterval) {
  std::vector<Duration> phases;
  for (int node = 0; node < 8; ++node) {
    make(poll_pace({}, 700), "node" + std::to_string(node));
    pass(20 * settings_.interval);
    phases.push_back(asked_.at.back().time_since_epoch() % settings_.interval);
  }
  const auto [first, last] = std::minmax_element(phases.begin(), phases.end());
  EXPECT_GT(*last - *first, settings_.interval / 4);
}

TEST_F(ControllerPollTest, FailuresBackOffAndEndWithTheNextAnswer) {
  make(poll_pace({}, 10));
  asked_.result = [] { return failed_result(SlurmFailure::kControllerUnreachable); };
  pass(seconds{3});
  ASSERT_EQ(asked_.at.size(), 1U);
  EXPECT_EQ(answer().failure, SlurmFailure::kControllerUnreachable);
  pass(hours{3});
  EXPECT_GE(asked_.at.size(), 30U);
  EXPECT_LE(asked_.at.size(), 60U);
  EXPECT_LE(longest_gap(), settings_.max_backoff + seconds{1});
  const auto before = asked_.at.size();
  pass_with_evidence(minutes{3}, seconds{1});
  EXPECT_LE(asked_.at.size(), before + 2) << "evidence does not shorten a back-off";
  asked_.result = nullptr;
  pass(settings_.max_backoff + seconds{1});
  EXPECT_EQ(answer().failure, std::nullopt);
  const auto answered = asked_.at.size();
  pass(10 * settings_.interval);
  EXPECT_GE(asked_.at.size(), answered + 10) << "and the interval holds again";
}

TEST_F(ControllerPollTest, EvidenceShortensABackOffForACauseOnThisMachine) {
  make(poll_pace({}, 10));
  asked_.result = [] { return failed_result(SlurmFailure::kMungeUnavailable); };
  pass(minutes{20});
  const auto before = asked_.at.size();
  poll_->request_poll(clock_.now());
  pass(seconds{20});
  EXPECT_EQ(asked_.at.size(), before + 1);
}

TEST_F(ControllerPollTest, NotInSlurmIsAnAnswer) {
  make(poll_pace({}, 10));
  asked_.result = [] { return failed_result(SlurmFailure::kNotInSlurm); };
  pass(30 * settings_.interval);
  EXPECT_GE(asked_.at.size(), 30U);
  EXPECT_LE(asked_.at.size(), 34U);
  EXPECT_EQ(answer().failure, SlurmFailure::kNotInSlurm);
}

TEST_F(ControllerPollTest, NotInSlurmEndsAnEarlierAnswer) {
  make(poll_pace({}, 10));
  pass(seconds{5});
  ASSERT_TRUE(answer().record);
  asked_.result = [] { return failed_result(SlurmFailure::kNotInSlurm); };
  pass(settings_.interval + seconds{5});
  EXPECT_TRUE(answer().stale);
}

TEST_F(ControllerPollTest, TheLastAnswerStaysUntilItIsStale) {
  make(poll_pace({}, 10));
  pass(seconds{5});
  ASSERT_TRUE(answer().record);
  asked_.result = [] { return failed_result(SlurmFailure::kTimeout); };
  pass(settings_.stale_after - seconds{10});
  EXPECT_TRUE(answer().record);
  EXPECT_FALSE(answer().stale);
  pass(seconds{70});
  EXPECT_TRUE(answer().stale);
}

TEST_F(ControllerPollTest, ASiteThatIsTooLargeIsNotQueried) {
  make(poll_pace({}, 3001));
  pass(hours{2});
  EXPECT_TRUE(asked_.at.empty());
  EXPECT_EQ(answer().failure, SlurmFailure::kOperatorRequired);
  EXPECT_THAT(answer().failure_detail, testing::HasSubstr("3001"));
  EXPECT_EQ(poll_->counters().failures, 1U);
  poll_->set_pace(poll_pace({}, 100));
  pass(minutes{1});
  EXPECT_FALSE(asked_.at.empty()) << "slurm.conf was corrected";
  EXPECT_EQ(answer().failure, std::nullopt);
}

TEST_F(ControllerPollTest, WithoutANodeNameNobodyIsQueried) {
  make(poll_pace({}, 10), "");
  pass(minutes{10});
  EXPECT_TRUE(asked_.at.empty());
  poll_->set_standing_failure({SlurmFailure::kNodeUnknown, "two slurmds"});
  poll_->set_standing_failure({SlurmFailure::kNodeUnknown, "two slurmds"});
  EXPECT_EQ(answer().failure_detail, "two slurmds");
  EXPECT_EQ(poll_->counters().failures, 1U);
  poll_->set_node("n1", SitePlace{"n1"});
  EXPECT_EQ(answer().failure, std::nullopt);
  pass(seconds{10});
  EXPECT_EQ(asked_.at.size(), 1U);
}

TEST_F(ControllerPollTest, ANameThatIsAHostListIsNotQueried) {
  make(poll_pace({}, 10), "n[1-9]");
  pass(minutes{10});
  EXPECT_TRUE(asked_.at.empty());
  EXPECT_EQ(answer().failure, SlurmFailure::kBadConfiguration);
}

TEST_F(ControllerPollTest, AnotherNodeForgetsTheAnswerAndThatUnderWay) {
  make(poll_pace({}, 10));
  pass(seconds{5});
  asked_.takes = [] { return seconds{10}; };
  pass(settings_.interval);
  ASSERT_EQ(asked_.at.size(), 2U);
  poll_->set_node("n2", SitePlace{"n2"});
  EXPECT_FALSE(answer().record);
  pass(milliseconds{1});
  EXPECT_FALSE(answer().record) << "what was asked is about n1";
  pass(seconds{30});
  EXPECT_TRUE(answer().record);
}

}  // namespace controller_poll_test
}  // namespace slurmlet::slurm
