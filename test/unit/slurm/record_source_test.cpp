// The daemon's side of slurmlet-operator's records: which are believed, how long, and what is done
// where there is none.

#include "slurm/sources/record_source.h"

#include <gmock/gmock.h>

#include "fakes/fake_clock.h"
#include "record_fixture.h"
#include "scripted_source.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::slurm {
namespace record_source_test {

using node::SlurmFailure;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

const WallTime kDumped{seconds{1763757000}};  // 2025-11-21T20:30:00Z
constexpr seconds kCounts{990};               // three refreshes and intervals of good()

PublishedRecord good(const std::string& state = "IDLE", WallTime dumped_at = kDumped) {
  PublishedRecord record;
  record.cluster = "Alps";
  record.dumped_at = dumped_at;
  record.interval = seconds{30};
  record.refresh = minutes{5};
  record.text = scontrol_record("n1", state);
  return record;
}

QueryResult judge(const std::string& annotation, Duration age = seconds{7},
                  const std::string& cluster = "alps", bool is_only = true) {
  return judge_record(read_record(annotation), cluster, "n1", kDumped + age, is_only);
}

TEST(JudgeRecord, TellsTheRecordAndWhenItWasSo) {
  const auto result = judge(to_annotation(good()));
  ASSERT_TRUE(result.record) << result.failure->detail;
  EXPECT_EQ(result.record->name, "n1");
  EXPECT_EQ(result.record->state.raw(), "IDLE");
  EXPECT_EQ(result.record->cpus, 4);
  EXPECT_EQ(result.record->allocated_cpus, 0);
  EXPECT_THAT(result.record->partitions, ElementsAre("normal", "debug"));
  EXPECT_EQ(result.record->cluster, "alps");
  EXPECT_EQ(result.as_of, kDumped);
  EXPECT_EQ(result.valid_for, kCounts + seconds{1});
  EXPECT_EQ(result.next_in, kCounts - seconds{7} + milliseconds{1});
}

TEST(JudgeRecord, UnusableOnesAreRefusedWithTheReason) {
  const auto with = [](const std::function<void(PublishedRecord&)>& change) {
    auto record = good();
    change(record);
    return to_annotation(record);
  };
  const auto text = [&](const std::string& lines) {
    return with([&](auto& record) { record.text = lines; });
  };
  const std::string mine = scontrol_record("n1");
  const std::string failing =
      with([](auto& record) { record.failure = "munge unavailable: no socket\n\x1b[31m"; });
  const struct {
    std::string annotation;
    Duration age;
    std::string why;
  } kRows[] = {
      {"", {}, "this Node has no annotation slurmlet.io/record"},
      {"garbage", {}, "was not written by slurmlet-operator"},
      {std::string(std::size_t{300} << 10, 'x'), {}, "is longer than any record"},
      {with([](auto& record) { record.cluster = "jura"; }),
       {},
       "is for cluster jura, but this node belongs to alps"},
      {text(scontrol_record("n2")), {}, "is about n2, but this node is n1"},
      {text(mine + scontrol_record("n1", "DOWN")), {}, "contains more than one record"},
      {text(mine.substr(0, mine.size() / 2)), {}, "is cut off"},
      {text("nonsense\n"), {}, "contains no node record"},
      {text("\n"), {}, "contains no node record"},
      {with([](auto& record) { record.dumped_at.reset(); }),
       {},
       "contains no answer from slurmctld yet"},
      {to_annotation(good()), -minutes{1} - seconds{1},
       "dates from the future, 2025-11-21T20:30:00Z: set the clocks of this node and of "
       "slurmlet-operator's host"},
      {to_annotation(good()), kCounts + seconds{1},
       "the annotation slurmlet.io/record of this Node dates from 2025-11-21T20:30:00Z; "
       "slurmlet-operator has stopped writing it"},
      {to_annotation(good()), hours{500}, "slurmlet-operator has stopped writing it"},
      {failing, minutes{17},
       "dates from 2025-11-21T20:30:00Z; slurmlet-operator reports: munge unavailable: no socket"},
  };
  for (const auto& row : kRows) {
    const auto result = judge(row.annotation, row.age);
    ASSERT_TRUE(result.failure) << row.why;
    EXPECT_FALSE(result.record);
    EXPECT_EQ(result.failure->cause, SlurmFailure::kRecordUnavailable) << row.why;
    EXPECT_THAT(result.failure->detail, HasSubstr(row.why));
    EXPECT_THAT(result.failure->detail, testing::Not(HasSubstr("\x1b")));
    EXPECT_LE(result.failure->detail.size(), 2048U);
  }
}

TEST(JudgeRecord, UsableOnesAreUsedToTheirBounds) {
  auto failing = good();
  failing.failure = "ControllerUnreachable: connect failure";
  auto anonymous = good();
  anonymous.cluster = "";
  EXPECT_TRUE(judge(to_annotation(good()), kCounts).record);
  EXPECT_TRUE(judge(to_annotation(good()), -minutes{1}).record);
  EXPECT_TRUE(judge(to_annotation(failing), minutes{14}).record) << "what was known still counts";
  EXPECT_TRUE(judge(to_annotation(good()), minutes{6}, "alps", false).record);
  EXPECT_FALSE(judge(to_annotation(good()), minutes{6} + seconds{1}, "alps", false).record)
      << "no refresh, and another source can take its place in time";
  EXPECT_TRUE(judge(to_annotation(failing), minutes{14}, "alps", false).record)
      << "which would ask the slurmctld that fails";
  EXPECT_TRUE(judge(to_annotation(anonymous)).record);
  EXPECT_TRUE(judge(to_annotation(good()), seconds{7}, "").record) << "no slurm.conf here";
}

TEST(JudgeRecord, ANodeThatSlurmctldDoesNotKnowIsNotInSlurm) {
  auto record = good();
  record.text = "";
  const auto result = judge(to_annotation(record));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->cause, SlurmFailure::kNotInSlurm);
  EXPECT_EQ(judge(to_annotation(record), minutes{17}).failure->cause,
            SlurmFailure::kRecordUnavailable);
}

// Whoever queried slurmctld in the operator's place would do so with the whole site.
TEST(JudgeRecord, AnOldOneWhoseFailureLiesWithSlurmctldIsTheAnswer) {
  const struct {
    const char* failure;
    Duration age;
    std::optional<Duration> failed;  // ago
    SlurmFailure cause;
    const char* cluster = "alps";
  } kRows[] = {
      {"ControllerUnreachable: connect failure", minutes{17}, minutes{1},
       SlurmFailure::kControllerUnreachable},
      {"ControllerTimeout: no answer", hours{16}, kCounts, SlurmFailure::kTimeout},
      {"ControllerRateLimited: rl_enable", minutes{59}, minutes{6}, SlurmFailure::kRateLimited},
      // The operator has died since, or writes without a time.
      {"ControllerRateLimited: rl_enable", minutes{59}, minutes{17},
       SlurmFailure::kRecordUnavailable},
      {"ControllerUnreachable: x", minutes{17}, {}, SlurmFailure::kRecordUnavailable},
      {"ControllerUnreachable: x", minutes{17}, -minutes{5}, SlurmFailure::kRecordUnavailable},
      {"ControllerUnreachable: x", -minutes{5}, minutes{1}, SlurmFailure::kControllerUnreachable},
      {"ControllerUnreachable: x", minutes{17}, minutes{1}, SlurmFailure::kRecordUnavailable,
       "jura"},
      {"munge unavailable: x", minutes{17}, minutes{1}, SlurmFailure::kRecordUnavailable},
      {"", minutes{17}, {}, SlurmFailure::kRecordUnavailable},
  };
  for (const auto& row : kRows) {
    auto record = good();
    record.failure = row.failure;
    if (row.failed) {
      record.failed_at = kDumped + row.age - *row.failed;
    }
    const auto result = judge(to_annotation(record), row.age, row.cluster);
    ASSERT_TRUE(result.failure) << row.failure;
    EXPECT_EQ(result.failure->cause, row.cause) << row.failure;
    EXPECT_EQ(result.next_in.has_value(), row.cause != SlurmFailure::kRecordUnavailable)
        << "and is judged again when it says nothing more";
  }
}

TEST(JudgeRecord, AHugeForgeryCostsLittle) {
  auto record = good();
  record.text = scontrol_record("n1", "IDLE", " Comment=" + std::string(200'000, '='));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(judge(to_annotation(record)).record);
  record.text = "";
  while (record.text.size() < 150'000) {
    record.text += scontrol_record("n1");
  }
  EXPECT_TRUE(judge(to_annotation(record)).failure);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds{60}) << "with sanitizers";
}

TEST(RecordSource, IsNewOncePerAnnotation) {
  RecordSource source{true};
  const WallTime now = kDumped + seconds{7};
  EXPECT_EQ(source.judge("n1", now).failure->detail, "this machine's Node has not been read yet");
  EXPECT_FALSE(source.set_record(std::nullopt));
  EXPECT_TRUE(source.set_record(to_annotation(good())));
  EXPECT_FALSE(source.set_record(to_annotation(good())));
  EXPECT_TRUE(source.judge("n1", now).record);
  EXPECT_TRUE(source.judge("n2", now).failure);
  source.set_cluster("jura");
  EXPECT_TRUE(source.judge("n1", now).failure);
  source.set_cluster("alps");
  EXPECT_FALSE(source.set_record(std::nullopt)) << "of a Node that is gone the last one counts";
  EXPECT_TRUE(source.has_record());
  EXPECT_TRUE(source.set_record(""));
  EXPECT_FALSE(source.has_record());
}

// What the poll makes of it, alone and with a source behind it, in time that the test lets pass.
class RecordPoll : public testing::Test {
 protected:
  static constexpr Duration kInterval = minutes{10};

  void make(bool with_fallback) {
    PollSettings settings;
    settings.interval = kInterval;
    settings.stale_after = 3 * kInterval;
    PollSources sources{RecordSource{!with_fallback}, nullptr};
    if (with_fallback) {
      sources.query = std::make_unique<ScriptedSource>(asked_);
    }
    poll_ = std::make_unique<ControllerPoll>(settings, std::move(sources), [] { return 0.5; });
    poll_->set_place({"", "", "", "alps"});
    poll_->set_node("n1", SitePlace{"n1"});
  }
  // As the operator does it at this moment.
  void publish(const std::string& state = "IDLE", const std::string& failure = "",
               Duration age = {}) {
    auto record = good(state, std::chrono::floor<seconds>(clock_.now().wall - age));
    record.failure = failure;
    if (!failure.empty()) {
      record.failed_at = std::chrono::floor<seconds>(clock_.now().wall);
    }
    write(to_annotation(record));
  }
  void write(const std::string& annotation) {
    if (poll_->set_record(annotation)) {
      poll_->step(clock_.now());
    }
  }
  void pass(Duration time) {
    clock_.run(time, [this] {
      const auto next = poll_->step(clock_.now());
      stale_ |= answer().stale;
      return std::max(next, clock_.now().steady + milliseconds{1});
    });
  }
  node::SlurmAnswer answer() const { return poll_->answer(clock_.now()); }
  std::string state() const {
    const auto now = answer();
    return now.failure  ? std::string{to_string(*now.failure)}
           : now.stale  ? std::string{"stale"}
           : now.record ? now.record->state.raw()
                        : "";
  }

  fakes::FakeClock clock_;
  AskedQueries asked_;
  std::unique_ptr<ControllerPoll> poll_;
  bool stale_ = false;  // at any step
};

TEST_F(RecordPoll, AChangeIsTakenAtOnceAndCostsNothing) {
  make(true);
  publish();
  EXPECT_EQ(state(), "IDLE");
  EXPECT_EQ(answer().answered_at, std::chrono::floor<seconds>(clock_.now().wall));
  EXPECT_EQ(answer().source, "slurmlet-operator");
  for (int i = 0; i < 24 * 12; ++i) {
    pass(minutes{5});
    publish(i % 2 == 0 ? "IDLE+DRAIN" : "IDLE");
    EXPECT_EQ(state(), i % 2 == 0 ? "IDLE+DRAIN" : "IDLE");
  }
  EXPECT_TRUE(asked_.at.empty());
  EXPECT_EQ(poll_->counters().queries, 0U);
  EXPECT_EQ(poll_->counters().answers, 0U);
  EXPECT_EQ(poll_->counters().failures, 0U);
  EXPECT_FALSE(stale_);
}

TEST_F(RecordPoll, ARecordThatIsThereTakesThePlaceOfTheFirstQuery) {
  make(true);
  poll_->step(clock_.now());  // before the Node has been read
  publish();
  pass(minutes{6});
  EXPECT_TRUE(asked_.at.empty());
}

TEST_F(RecordPoll, WithoutARecordTheFirstQueryComesWhenItAlwaysDoes) {
  make(true);
  write("");
  const auto begin = clock_.now().steady;
  pass(minutes{1});
  ASSERT_EQ(asked_.at.size(), 1U);
  EXPECT_LE(asked_.at.front() - begin, seconds{2});
}

TEST_F(RecordPoll, OneThatIsTooOldIsReplacedAtTheNodesOwnTimeAndNothingIsUnknownMeanwhile) {
  make(true);
  publish();
  const auto missed = clock_.now().steady + minutes{6};  // the refresh, and two dumps
  const auto too_old = clock_.now().steady + kCounts;
  pass(minutes{40});
  ASSERT_FALSE(asked_.at.empty());
  EXPECT_GE(asked_.at.front(), missed);
  EXPECT_LE(asked_.at.front(), too_old);
  EXPECT_FALSE(stale_);
  EXPECT_EQ(answer().source, "scontrol");
  const auto before = asked_.at.size();
  publish("IDLE+DRAIN");
  EXPECT_EQ(state(), "IDLE+DRAIN");
  EXPECT_EQ(answer().source, "slurmlet-operator");
  pass(minutes{6});
  EXPECT_EQ(asked_.at.size(), before);
}

// What an operator that has died said is shown no longer than its record counts.
TEST_F(RecordPoll, WhereNobodyAnswersInItsPlaceOneThatIsTooOldIsUnknown) {
  make(true);
  asked_.result = [] { return failed_result(SlurmFailure::kControllerUnreachable); };
  publish();
  pass(kCounts);
  EXPECT_FALSE(stale_);
  pass(seconds{32});
  EXPECT_TRUE(answer().stale);
}

TEST_F(RecordPoll, OneThatIsRemovedIsReplacedToo) {
  make(true);
  publish();
  pass(minutes{1});
  write("");
  EXPECT_EQ(state(), "record unavailable");
  EXPECT_TRUE(asked_.at.empty());
  pass(kInterval + seconds{1});
  EXPECT_EQ(asked_.at.size(), 1U);
  EXPECT_EQ(state(), "IDLE");
  EXPECT_FALSE(stale_);
}

TEST_F(RecordPoll, UnusableOnesAreNothingToASourceInUse) {
  make(true);
  write("");
  pass(minutes{1});
  const auto before = asked_.at.size();
  for (int i = 0; i < 20; ++i) {
    publish("IDLE", "", hours{2} + seconds{i});
  }
  EXPECT_EQ(asked_.at.size(), before);
  EXPECT_EQ(answer().failure, std::nullopt);
}

// However long.
TEST_F(RecordPoll, WhileTheOperatorBlamesSlurmctldNobodyQueriesIt) {
  make(true);
  publish();
  const std::string down = "ControllerUnreachable: connect failure";
  for (int i = 1; i <= 40; ++i) {
    pass(minutes{5});
    publish("IDLE", down, minutes{5 * i});
  }
  EXPECT_TRUE(asked_.at.empty());
  EXPECT_EQ(state(), "controller unreachable");
  EXPECT_TRUE(answer().stale);
  pass(kCounts + seconds{2});
  EXPECT_EQ(answer().failure, SlurmFailure::kRecordUnavailable) << "the operator has died";
  ASSERT_TRUE(asked_.at.empty());
  EXPECT_TRUE(answer().stale) << "what was Unknown is not known again for that";
  pass(kInterval);
  EXPECT_EQ(asked_.at.size(), 1U);
  publish();
  EXPECT_EQ(state(), "IDLE");
}

TEST_F(RecordPoll, SlurmctldsFailureStopsQueriesThatHaveBegun) {
  make(true);
  write("");
  pass(minutes{30});
  const auto before = asked_.at.size();
  ASSERT_GE(before, 2U);
  asked_.result = [] { return failed_result(SlurmFailure::kControllerUnreachable); };
  publish("IDLE", "ControllerUnreachable: connect failure", minutes{20});
  pass(minutes{14});
  EXPECT_LE(asked_.at.size(), before + 1);
}

TEST_F(RecordPoll, WhatAQueryOfItsOwnHasSaidSinceIsNotTakenBack) {
  make(true);
  asked_.result = [] {
    auto result = good_result();
    result.record->state = {"IDLE", {"DRAIN"}};
    return result;
  };
  write("");
  pass(seconds{10});
  ASSERT_EQ(state(), "IDLE+DRAIN");
  publish("IDLE", "", seconds{25});  // the dump began before
  EXPECT_EQ(state(), "IDLE+DRAIN");
  EXPECT_EQ(answer().source, "scontrol");
  pass(seconds{5});
  publish("IDLE");
  EXPECT_EQ(state(), "IDLE");
}

TEST_F(RecordPoll, ARecordThatGoesBesideANewerAnswerLeavesTheQueries) {
  make(true);
  write("");
  pass(seconds{10});
  publish("IDLE", "", seconds{25});  // older than the answer
  const auto queries = poll_->counters().queries;
  write("");
  pass(minutes{5});
  EXPECT_GT(poll_->counters().queries, queries);
}

// The clock of the operator's host may be behind.
TEST_F(RecordPoll, WhatOnlyLooksOlderIsTakenWhenNothingNewerComes) {
  for (const Duration behind : {seconds{25}, seconds{150}}) {
    make(true);
    write("");
    pass(seconds{10});
    publish("IDLE+DRAIN", "", behind);
    EXPECT_EQ(state(), "IDLE");
    pass(minutes{1});
    EXPECT_EQ(state(), behind < minutes{1} ? "IDLE+DRAIN" : "IDLE");
  }
}

// The node's own clock was ahead when it queried, and has been put right.
TEST_F(RecordPoll, AClockThatIsSetDoesNotMakeNewRecordsOlder) {
  make(true);
  clock_.step_wall(minutes{45});
  write("");
  pass(seconds{10});
  ASSERT_EQ(state(), "IDLE");
  clock_.step_wall(-minutes{45});
  pass(minutes{2});
  publish("IDLE+DRAIN");
  EXPECT_EQ(state(), "IDLE+DRAIN");
}

TEST_F(RecordPoll, EvidenceIsNoReasonToQuery) {
  make(true);
  publish();
  for (int i = 0; i < 6; ++i) {
    poll_->request_poll(clock_.now());
    pass(minutes{1});
  }
  EXPECT_TRUE(asked_.at.empty());
}

TEST_F(RecordPoll, AloneItIsUnknownWithoutARecordAndKnownWithTheNext) {
  make(false);
  poll_->step(clock_.now());
  EXPECT_EQ(state(), "") << "the Node is being read";
  write("");
  EXPECT_EQ(state(), "record unavailable");
  publish();
  EXPECT_EQ(state(), "IDLE");
  pass(kCounts + seconds{31});
  EXPECT_EQ(state(), "record unavailable");
  EXPECT_TRUE(answer().stale);
  publish();
  EXPECT_EQ(state(), "IDLE");
  EXPECT_FALSE(answer().stale);
}

TEST_F(RecordPoll, AloneItSaysAfterAWhileThatTheNodeCannotBeRead) {
  make(false);
  pass(seconds{3});
  EXPECT_EQ(answer().failure_detail, "this machine's Node has not been read yet");
}

TEST_F(RecordPoll, AnotherNodeIsJudgedAnew) {
  make(true);
  publish();
  poll_->set_node("n2", SitePlace{"n2"});
  poll_->step(clock_.now());
  EXPECT_FALSE(answer().record) << "the record is of n1";
  pass(seconds{10});
  EXPECT_EQ(asked_.at.size(), 1U);
  publish();
  poll_->set_node("n1", SitePlace{"n1"});
  poll_->step(clock_.now());
  EXPECT_EQ(answer().source, "slurmlet-operator");
}

}  // namespace record_source_test
}  // namespace slurmlet::slurm
