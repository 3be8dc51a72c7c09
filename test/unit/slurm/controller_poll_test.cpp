#include "slurm/sources/controller_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fake_runner.h"
#include "fakes/fake_clock.h"
#include "fixture.h"
#include "scripted_source.h"
#include "slurm/sources/sinfo_source.h"

namespace slurmlet::slurm {
namespace controller_poll_test {

using node::SlurmFailure;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kNode = "nid000001";

class ControllerPollTest : public testing::Test {
 protected:
  void make(PollSettings settings = {}, const std::string& node = kNode) {
    poll_ = std::make_unique<ControllerPoll>(
        settings, node,
        std::make_unique<SinfoSource>(sinfo_, std::make_unique<FakeRunner>(program_)),
        [this] { return random_; });
  }
  // Evidence without its spread.
  static PollSettings eager() {
    PollSettings settings;
    settings.evidence_spread = {};
    return settings;
  }
  SteadyTime step() { return poll_->step(clock_.now()); }
  node::SlurmAnswer answer() const { return poll_->answer(clock_.now()); }

  // Lets time pass to where step() wants to be called, at most `by`.
  void pass(Duration by) {
    const auto end = clock_.now().steady + by;
    while (true) {
      const auto wake = step();
      const auto now = clock_.now().steady;
      if (wake >= end || now >= end) {
        break;
      }
      clock_.advance(std::max<Duration>(wake - now, milliseconds{1}));
    }
    if (end > clock_.now().steady) {
      clock_.advance(end - clock_.now().steady);
    }
    step();
  }
  void end_with(const CommandOutput& output) {
    program_.end = output;
    step();
  }
  // An answer about the node that was asked for.
  CommandOutput good() const {
    CommandOutput output;
    output.out = query_answer("22.05.8/query-idle.out");
    output.out.replace(0, output.out.find('|'), program_.started.back().argv[5]);
    return output;
  }
  static CommandOutput refused() {
    CommandOutput output;
    output.exit_code = 1;
    output.err = fixture("22.05.8/ctld-down.sinfo.err");
    return output;
  }
  // Steps until the next question is under way; returns the time that took.
  Duration until_question(Duration limit = hours{2}) {
    const auto begin = clock_.now().steady;
    const auto before = program_.started.size();
    while (program_.started.size() == before && clock_.now().steady - begin < limit) {
      const auto wake = step();
      if (program_.started.size() == before) {
        clock_.advance(std::max<Duration>(wake - clock_.now().steady, milliseconds{1}));
      }
    }
    EXPECT_GT(program_.started.size(), before) << "no question";
    return clock_.now().steady - begin;
  }

  fakes::FakeClock clock_;
  FakeProgram program_;
  SinfoSettings sinfo_;
  double random_ = 0.5;
  std::unique_ptr<ControllerPoll> poll_;
};

TEST_F(ControllerPollTest, FirstQuestionComesWithinTheSpread) {
  std::set<Duration> delays;
  for (int i = 0; i < 50; ++i) {
    program_ = {};
    make({}, "nid" + std::to_string(i));
    const auto delay = until_question();
    EXPECT_LT(delay, seconds{2} + milliseconds{2});
    delays.insert(delay);
  }
  EXPECT_GT(delays.size(), 40U) << "a fleet started together must not ask together";
}

TEST_F(ControllerPollTest, AsksAboutItsNodeAndReportsTheAnswer) {
  make();
  until_question();
  ASSERT_EQ(program_.started.size(), 1U);
  EXPECT_EQ(program_.started[0].argv[5], kNode);
  EXPECT_FALSE(poll_->wake_fds().empty());
  EXPECT_FALSE(answer().record);

  end_with(good());
  EXPECT_TRUE(poll_->wake_fds().empty());
  ASSERT_TRUE(answer().record);
  EXPECT_EQ(answer().record->state.base, "IDLE");
  EXPECT_EQ(answer().answered_at, clock_.now().wall);
  EXPECT_FALSE(answer().failure);
  EXPECT_FALSE(answer().stale);
  EXPECT_EQ(poll_->counters().questions, 1U);
  EXPECT_EQ(poll_->counters().answers, 1U);
}

TEST_F(ControllerPollTest, CadenceIsOnePerIntervalAtAPhaseOfTheWallClock) {
  const auto phase_of = [&](const std::string& node) {
    program_ = {};
    make({}, node);
    until_question();
    end_with(good());
    until_question();
    const auto wall = clock_.now().wall.time_since_epoch();
    end_with(good());
    for (int i = 0; i < 5; ++i) {
      EXPECT_GE(until_question(), seconds{59});
      EXPECT_LT((clock_.now().wall.time_since_epoch() - wall) % seconds{60}, milliseconds{5});
      end_with(good());
    }
    return (wall % seconds{60}) / milliseconds{100};
  };
  std::set<std::int64_t> phases;
  for (int i = 0; i < 30; ++i) {
    phases.insert(phase_of("nid" + std::to_string(i)));
  }
  EXPECT_GT(phases.size(), 20U);
  EXPECT_GT(*phases.rbegin() - *phases.begin(), 300) << "phases must cover the interval";
}

// Ends the first two questions and returns when the third is due.
class LateTick : public ControllerPollTest {
 protected:
  SteadyTime next_tick(const PollSettings& settings) {
    make(settings);
    for (int i = 0; i < 2; ++i) {
      until_question();
      end_with(good());
    }
    return step();
  }
  void come_late(SteadyTime tick, Duration by) { clock_.advance(tick - clock_.now().steady + by); }
  static PollSettings of_site(std::int64_t nodes) { return poll_pace({}, nodes); }
};

TEST_F(LateTick, MovesToARandomTimeWithinTheSpreadOfTheFirstQuestion) {
  const PollSettings settings = of_site(3000);  // every 300 s, spread over 187 s
  for (const double chance : {0.1, 0.9}) {
    program_ = {};
    random_ = chance;
    const auto tick = next_tick(settings);
    come_late(tick, milliseconds{1001});
    const std::chrono::duration<double> waited = until_question();
    EXPECT_NEAR(waited.count(), chance * 187, 0.01);
    end_with(good());
    EXPECT_EQ((step() - tick) % seconds{300}, Duration::zero()) << "its place is what it was";
  }
}

TEST_F(LateTick, IsOnTimeUpToASecond) {
  come_late(next_tick(of_site(3000)), seconds{1});
  EXPECT_EQ(until_question(), Duration::zero());
}

TEST_F(LateTick, IsPostponedOnce) {
  random_ = 0.9;
  come_late(next_tick(of_site(3000)), seconds{2});
  come_late(step(), seconds{2});
  EXPECT_EQ(until_question(), Duration::zero());
}

// A retry may come an interval later, and the answer must last till then.
TEST_F(LateTick, LeavesTimeForARetry) {
  random_ = 1;
  PollSettings settings;
  settings.first_spread = settings.interval;
  const auto tick = next_tick(settings);
  const auto stale = clock_.now().steady + settings.stale_after;
  come_late(tick, minutes{2});
  EXPECT_GT(until_question(), Duration::zero());
  EXPECT_LE(clock_.now().steady + settings.interval * 5 / 4, stale);
  come_late(next_tick(settings), minutes{3});
  EXPECT_EQ(until_question(), Duration::zero()) << "no time to lose";
}

// Evidence of the same time does not come at once either, and takes the tick's place.
TEST_F(LateTick, MayStillBeReplacedOnEvidence) {
  PollSettings settings;
  settings.interval = seconds{300};
  settings.first_spread = settings.interval;
  settings.evidence_spread = seconds{160};
  settings.stale_after = seconds{900};
  ASSERT_FALSE(settings.has_room()) << "evidence is paid with the coming tick only";
  random_ = 0.99;
  const auto tick = next_tick(settings);
  poll_->ask_soon(clock_.now());
  come_late(tick, seconds{2});
  const auto waited = until_question();
  EXPECT_GT(waited, seconds{150}) << "with all others";
  EXPECT_LE(waited, settings.evidence_spread);
}

TEST_F(ControllerPollTest, OnlyOneQuestionIsUnderWay) {
  PollSettings settings;
  sinfo_.timeout = hours{1};
  make(settings);
  until_question();
  poll_->ask_soon(clock_.now());
  pass(minutes{10});
  EXPECT_EQ(program_.started.size(), 1U);
}

TEST_F(ControllerPollTest, OwnDeadlineEndsTheQuestion) {
  make();
  until_question();
  EXPECT_EQ(step(), clock_.now().steady + seconds{15});
  clock_.advance(seconds{15});
  step();
  EXPECT_EQ(program_.killed, 1);
  EXPECT_EQ(answer().failure, SlurmFailure::kTimeout);
}

TEST_F(ControllerPollTest, FirstFailureIsReportedAtOnce) {
  make();
  until_question();
  end_with(refused());
  EXPECT_FALSE(answer().record);
  EXPECT_EQ(answer().failure, SlurmFailure::kControllerUnreachable);
  EXPECT_EQ(answer().failure_detail, "Unable to contact slurm controller (connect failure)");
  EXPECT_FALSE(answer().stale);
}

TEST_F(ControllerPollTest, KeepsTheLastRecordWhileFailingAndMarksItStale) {
  make();
  until_question();
  end_with(good());
  const auto answered_at = clock_.now().wall;
  while (clock_.now().wall < answered_at + seconds{290}) {
    until_question();
    end_with(refused());
  }
  EXPECT_EQ(answer().record->state.base, "IDLE");
  EXPECT_EQ(answer().answered_at, answered_at);
  EXPECT_TRUE(answer().failure);

  clock_.advance(minutes{6});
  EXPECT_TRUE(answer().stale);
  EXPECT_TRUE(answer().record);
}

TEST_F(ControllerPollTest, WakesWhenTheAnswerTurnsStale) {
  PollSettings settings;
  settings.stale_after = seconds{20};
  make(settings);
  until_question();
  end_with(good());
  const auto answered = clock_.now().steady;
  while (!answer().stale && clock_.now().steady < answered + minutes{1}) {
    clock_.advance(std::max<Duration>(step() - clock_.now().steady, milliseconds{1}));
    program_.end.reset();
    if (program_.running) {
      end_with(refused());
    }
  }
  EXPECT_TRUE(answer().stale);
  EXPECT_GE(clock_.now().steady - answered, seconds{20});
  EXPECT_LE(clock_.now().steady - answered, seconds{50} + milliseconds{5});
}

// The answers of a feed are all of the same moment.
TEST_F(ControllerPollTest, AnswersOfOneMomentTurnStaleAtManyMoments) {
  std::set<std::int64_t> at;
  for (int i = 0; i < 30; ++i) {
    program_ = {};
    PollSettings settings;
    settings.first_spread = {};
    make(settings, "nid" + std::to_string(i));
    until_question();
    end_with(good());
    const auto answered = clock_.now().steady;
    for (int ms = 0;
         !poll_->answer({answered + settings.stale_after + milliseconds{ms}, clock_.now().wall})
              .stale;
         ms += 100) {
      at.insert(ms);
    }
  }
  EXPECT_GT(at.size(), 200U) << "spread over half a minute";
}

TEST_F(ControllerPollTest, BacksOffUpToTheBoundWhileFailing) {
  random_ = 0.999999;
  make();
  until_question();
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 8; ++i) {
    end_with(refused());
    waits.push_back(std::chrono::round<seconds>(until_question()).count());
  }
  EXPECT_THAT(waits, testing::ElementsAre(15, 30, 60, 120, 240, 300, 300, 300));
}

TEST_F(ControllerPollTest, NormalCadenceAfterRecovery) {
  make();
  until_question();
  for (int i = 0; i < 6; ++i) {
    end_with(refused());
    until_question();
  }
  end_with(good());
  EXPECT_FALSE(answer().failure);
  EXPECT_EQ(answer().failure_detail, "");
  EXPECT_LE(until_question(), seconds{106}) << "a tick close to the retry is left out";
  end_with(good());
  EXPECT_GE(until_question(), seconds{59});
  // The back-off starts from the beginning the next time, after the hurried ones are paid off.
  for (int i = 0; i < 60; ++i) {
    end_with(good());
    until_question();
  }
  random_ = 0.999999;
  end_with(refused());
  EXPECT_LE(until_question(), seconds{16});
}

TEST_F(ControllerPollTest, NotInSlurmIsAnAnswerAndKeepsTheCadence) {
  make();
  until_question();
  end_with(CommandOutput{});
  EXPECT_EQ(answer().failure, SlurmFailure::kNotInSlurm);
  EXPECT_THAT(answer().failure_detail, testing::HasSubstr(std::string{"no node "} + kNode));
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(until_question(), i == 0 ? seconds{106} : seconds{61});
    end_with(CommandOutput{});
  }
}

// The start of a job is evidence on all its nodes at the same moment.
TEST_F(ControllerPollTest, EvidenceOfAFleetSpreadsOverHalfAMinute) {
  std::set<std::int64_t> seconds_later;
  for (int i = 0; i < 100; ++i) {
    program_ = {};
    make({}, "nid" + std::to_string(i));
    until_question();
    end_with(good());
    until_question();
    end_with(good());
    clock_.advance(seconds{70} - clock_.now().wall.time_since_epoch() % seconds{60});
    poll_->ask_soon(clock_.now());
    poll_->ask_soon(clock_.now());
    const auto waited = until_question();
    EXPECT_LE(waited, seconds{30});
    seconds_later.insert(waited / seconds{1});
  }
  EXPECT_GE(seconds_later.size(), 24U);
}

TEST_F(ControllerPollTest, EvidenceAsksSoonerButKeepsTheGap) {
  make(eager());
  until_question();
  end_with(good());
  // Right after a question of the cadence, so that the next one is a whole interval away.
  until_question();
  end_with(good());
  clock_.advance(seconds{2});
  poll_->ask_soon(clock_.now());
  const auto waited = until_question();
  EXPECT_GE(waited, seconds{3});
  EXPECT_LT(waited, seconds{4});
}

TEST_F(ControllerPollTest, EvidenceDuringAQuestionAsksAgain) {
  make(eager());
  until_question();
  end_with(good());
  until_question();
  poll_->ask_soon(clock_.now());
  end_with(good());
  EXPECT_LE(until_question(), seconds{6});
}

TEST_F(ControllerPollTest, EvidenceBeforeTheFirstQuestionChangesNothing) {
  make();
  step();
  poll_->ask_soon(clock_.now());
  step();
  EXPECT_TRUE(program_.started.empty() || clock_.now().steady == program_.started_at[0]);
  until_question();
  end_with(good());
  pass(seconds{6});
  EXPECT_EQ(program_.started.size(), 1U);
}

TEST_F(ControllerPollTest, EvidenceReplacesTheTickThatFollows) {
  make(eager());
  until_question();
  end_with(good());
  until_question();
  end_with(good());
  for (int i = 0; i < 10; ++i) {
    clock_.advance(seconds{30});
    poll_->ask_soon(clock_.now());
    EXPECT_EQ(until_question(), Duration{0}) << i;
    end_with(good());
    EXPECT_NEAR(std::chrono::duration<double>(until_question()).count(), 90, 1) << i;
    end_with(good());
  }
}

TEST_F(ControllerPollTest, ConstantEvidenceStaysWithinTheBudget) {
  make(eager());
  const auto begin = clock_.now().steady;
  while (clock_.now().steady - begin < hours{3}) {
    poll_->ask_soon(clock_.now());
    step();
    if (program_.running) {
      end_with(good());
    }
    clock_.advance(seconds{1});
  }
  EXPECT_LE(program_.started.size(), 3 * 60U);
  EXPECT_GE(program_.started.size(), 3 * 54U);
  for (std::size_t i = 1; i < program_.started_at.size(); ++i) {
    EXPECT_GE(program_.started_at[i] - program_.started_at[i - 1], seconds{5}) << i;
  }
}

TEST_F(ControllerPollTest, ARateLimitIsLeftAloneForAtLeastHalfAMinute) {
  random_ = 0.999999;
  make();
  until_question();
  CommandOutput limited;
  limited.timed_out = true;
  limited.signal = 9;
  limited.err = fixture("25.11/ratelimited-nobody-verbose.err");
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 6; ++i) {
    end_with(limited);
    EXPECT_EQ(answer().failure, SlurmFailure::kRateLimited);
    poll_->ask_soon(clock_.now());
    waits.push_back(std::chrono::round<seconds>(until_question()).count());
  }
  EXPECT_THAT(waits, testing::ElementsAre(60, 120, 240, 300, 300, 300));
}

// slurm.conf was read again, and has other nodes.
TEST_F(ControllerPollTest, AnotherPaceHoldsAndTheHourGoesOn) {
  make();
  until_question();
  end_with(good());
  PollSettings slow = poll_pace({}, 6000);
  poll_->set_pace(slow);
  EXPECT_EQ(poll_->counters().questions_left, 11);
  until_question();
  end_with(good());
  EXPECT_GE(until_question(), seconds{599});
  EXPECT_EQ(poll_->counters().pace.interval, seconds{600});
}

TEST_F(ControllerPollTest, AStandingFailureIsToldAndNothingIsAsked) {
  make();
  until_question();
  end_with(good());
  poll_->set_standing_failure({SlurmFailure::kNodeUnknown, "slurmd is running here as n1 and n2"});
  poll_->set_standing_failure({SlurmFailure::kNodeUnknown, "slurmd is running here as n1 and n2"});
  EXPECT_EQ(step(), kNever);
  poll_->ask_soon(clock_.now());
  pass(minutes{10});
  EXPECT_EQ(program_.started.size(), 1U);
  EXPECT_FALSE(answer().record) << "it was about another node, perhaps";
  EXPECT_EQ(answer().failure, SlurmFailure::kNodeUnknown);
  EXPECT_EQ(answer().failure_detail, "slurmd is running here as n1 and n2");
  EXPECT_EQ(poll_->counters().failures, 1U);

  poll_->set_node(kNode);
  EXPECT_LE(until_question(), seconds{3});
  end_with(good());
  EXPECT_FALSE(answer().failure);
}

TEST_F(ControllerPollTest, EvidenceDoesNotHurryAnUnreachableController) {
  random_ = 0.999999;
  make();
  until_question();
  for (int i = 0; i < 5; ++i) {
    end_with(refused());
    until_question();
  }
  end_with(refused());
  poll_->ask_soon(clock_.now());
  EXPECT_GT(until_question(), seconds{200});
}

TEST_F(ControllerPollTest, EvidenceHurriesAfterALocalCause) {
  random_ = 0.999999;
  CommandOutput local;
  local.exit_code = 1;
  for (const auto& err : {fixture("22.05.8/munge-down.sinfo.err"),
                          std::string{"sinfo: error: failed to connect to any sack sockets\n"}}) {
    local.err = err;
    program_ = {};
    make(eager());
    until_question();
    for (int i = 0; i < 5; ++i) {
      end_with(local);
      until_question();
    }
    end_with(local);
    poll_->ask_soon(clock_.now());
    EXPECT_LE(until_question(), seconds{6}) << err;
  }
}

TEST_F(ControllerPollTest, CountsFailuresByCause) {
  make();
  until_question();
  end_with(refused());
  until_question();
  end_with(CommandOutput{});
  const auto counters = poll_->counters();
  EXPECT_EQ(counters.questions, 2U);
  EXPECT_EQ(counters.answers, 0U);
  EXPECT_EQ(counters.failures, 2U);
  EXPECT_EQ(counters.failures_by_cause.at(SlurmFailure::kControllerUnreachable), 1U);
  EXPECT_EQ(counters.failures_by_cause.at(SlurmFailure::kNotInSlurm), 1U);
}

TEST_F(ControllerPollTest, AMissingProgramIsAFailureWithBackOff) {
  make();
  program_.start_error = Error{Code::kNotFound, "run sinfo: No such file or directory"};
  pass(seconds{3});
  EXPECT_EQ(answer().failure, SlurmFailure::kCommandMissing);
  EXPECT_EQ(poll_->counters().questions, 0U);
  pass(minutes{10});
  EXPECT_LE(poll_->counters().failures, 20U);
}

TEST_F(ControllerPollTest, AHostListIsNeverAsked) {
  make({}, "nid[000001-010000]");
  pass(minutes{5});
  EXPECT_TRUE(program_.started.empty());
  EXPECT_EQ(answer().failure, SlurmFailure::kBadConfiguration);
  EXPECT_EQ(poll_->counters().failures, 1U);
}

TEST_F(ControllerPollTest, WithoutANameNothingIsAskedUntilItIsLearnt) {
  make({}, "");
  EXPECT_EQ(step(), kNever);
  pass(minutes{5});
  EXPECT_TRUE(program_.started.empty());
  poll_->set_node(kNode);
  EXPECT_LE(until_question(), seconds{3});
  end_with(good());
  EXPECT_TRUE(answer().record);
}

TEST_F(ControllerPollTest, AnAnswerAboutAFormerNameIsDropped) {
  make({}, "old");
  until_question();
  poll_->set_node(kNode);
  end_with(good());
  EXPECT_FALSE(answer().record);
  EXPECT_FALSE(answer().failure);
  until_question();
  end_with(good());
  EXPECT_TRUE(answer().record);
}

TEST_F(ControllerPollTest, AStepOfTheWallClockDelaysByLessThanTwoIntervals) {
  make();
  until_question();
  end_with(good());
  for (const auto by : {milliseconds{-86'400'000}, milliseconds{86'400'000}}) {
    clock_.step_wall(by);
    EXPECT_LE(until_question(), seconds{106});
    end_with(good());
  }
}

// slurm.restURL of another cluster, where a node has the same name.
TEST_F(ControllerPollTest, AnAnswerForAnotherClusterIsRejected) {
  const auto answer_of = [&](const std::string& cluster) {
    CommandOutput output = good();
    const auto at = output.out.find("|N/A||");
    EXPECT_NE(at, std::string::npos);
    output.out.replace(at, 6, "|" + cluster + "||");
    return output;
  };
  make();
  poll_->set_place({"", "", "", "alps"});
  until_question();
  end_with(answer_of("jura"));
  EXPECT_EQ(answer().failure, SlurmFailure::kOtherCluster);
  EXPECT_FALSE(answer().record);
  EXPECT_THAT(answer().failure_detail, testing::AllOf(testing::HasSubstr("\"jura\""),
                                                      testing::HasSubstr("ClusterName=alps")));
  for (const char* ours : {"Alps", "N/A"}) {
    until_question();
    end_with(answer_of(ours));
    EXPECT_TRUE(answer().record) << ours;
  }
  poll_->set_place({});
  until_question();
  end_with(answer_of("jura"));
  EXPECT_FALSE(answer().failure) << "without slurm.conf the cluster is not known";
}

// The real thing, once: a program that never ends is killed with its children.
TEST(ControllerPollProcess, KillsTheProcessGroupAtTheDeadline) {
  Command runner;
  CommandSpec spec;
  spec.argv = {"sh", "-c", "sleep 1000 & sleep 1000"};
  spec.timeout = milliseconds{50};
  const SystemClock clock;
  ASSERT_TRUE(runner.start(spec, clock.now().steady));
  EXPECT_FALSE(runner.wake_fds().empty());
  CommandOutput output;
  EXPECT_TRUE(runner.poll(runner.deadline(), output));
  EXPECT_TRUE(output.timed_out);
  EXPECT_FALSE(runner.running());
}

// -- full queries --------------------------------------------------------------------

class ConfirmationTest : public testing::Test {
 protected:
  // Counts the full queries of a node that wants one after each answer.
  int full_queries(const std::string& node, Duration time, bool wanted = true) {
    AskedQuestions asked;
    ControllerPoll poll{settings_, node, std::make_unique<ScriptedSource>(asked),
                        [] { return 0.5; }};
    const auto end = clock_.now().steady + time;
    int before = 0;
    first_ = kNever;
    while (clock_.now().steady < end) {
      SteadyTime wake = poll.step(clock_.now());
      wake = std::min(wake, poll.want_confirmation(wanted, clock_.now()));
      if (asked.full != before && first_ == kNever) {
        first_ = clock_.now().steady;
      }
      before = asked.full;
      clock_.advance(
          std::max<Duration>(std::min(wake, end) - clock_.now().steady, milliseconds{1}));
    }
    most_in_an_hour_ = static_cast<int>(asked.at.size());
    return asked.full;
  }

  fakes::FakeClock clock_;
  PollSettings settings_;
  SteadyTime first_ = kNever;
  int most_in_an_hour_ = 0;
};

TEST_F(ConfirmationTest, OneInEachIntervalAndNoneThatIsNotWanted) {
  EXPECT_EQ(full_queries(kNode, hours{1}), 6);
  EXPECT_LE(most_in_an_hour_, 60) << "counted in the budget";
  EXPECT_EQ(full_queries(kNode, hours{1}, false), 0);
  settings_.confirm_interval = hours{1};
  EXPECT_EQ(full_queries(kNode, hours{5}), 5);
}

// Nodes whose jobs end together want one at the same moment.
TEST_F(ConfirmationTest, AFleetSpreadsOverTheInterval) {
  std::set<Duration> tenths;
  for (int i = 0; i < 100; ++i) {
    const auto begin = clock_.now().steady;
    full_queries("nid" + std::to_string(i), minutes{11});
    ASSERT_NE(first_, kNever);
    EXPECT_LE(first_ - begin, settings_.confirm_interval + minutes{1});
    tenths.insert((first_ - begin) / minutes{1} * Duration{1});
  }
  EXPECT_GE(tenths.size(), 9U);
}

TEST_F(ConfirmationTest, NoneWhileSlurmctldDoesNotAnswer) {
  AskedQuestions asked;
  asked.result = [] { return failed_result(SlurmFailure::kControllerUnreachable); };
  ControllerPoll poll{settings_, kNode, std::make_unique<ScriptedSource>(asked),
                      [] { return 0.5; }};
  for (int i = 0; i < 3600; ++i) {
    poll.step(clock_.now());
    poll.want_confirmation(true, clock_.now());
    clock_.advance(seconds{1});
  }
  EXPECT_EQ(asked.full, 0);
}

}  // namespace controller_poll_test
}  // namespace slurmlet::slurm
