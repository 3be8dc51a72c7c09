#include "slurm/sources/auto_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/delay.h"
#include "fakes/fake_clock.h"

namespace slurmlet::slurm {
namespace auto_source_test {

using node::SlurmFailure;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// What a test sees of a source, and how it lets it answer.
struct Script {
  int asked = 0;
  std::string node;
  bool busy = false;
  bool is_free = false;
  News news = News::kNone;
  std::optional<std::string> record;
  Query query = Query::kOneNode;
  ClusterPlace place;
  std::optional<QueryFailure> cannot_begin;
  std::optional<QueryResult> answer;
};

class ScriptedSource final : public NodeSource {
 public:
  ScriptedSource(std::string name, Script& script) : name_(std::move(name)), script_(script) {}
  std::optional<QueryFailure> ask(const std::string& node, Query query, Now) override {
    ++script_.asked;
    script_.query = query;
    script_.node = node;
    if (!script_.cannot_begin) {
      script_.busy = true;
    }
    return script_.cannot_begin;
  }
  bool busy() const override { return script_.busy; }
  std::optional<QueryResult> poll(Now) override {
    if (script_.answer) {
      script_.busy = false;
    }
    return std::exchange(script_.answer, std::nullopt);
  }
  SteadyTime wake_at() const override {
    return script_.busy ? SteadyTime{seconds{name_.size()}} : kNever;
  }
  std::vector<int> wake_fds() const override {
    return script_.busy ? std::vector<int>{static_cast<int>(name_.size())} : std::vector<int>{};
  }
  std::string name() const override { return name_; }
  void set_place(const ClusterPlace& place) override { script_.place = place; }
  bool is_free() const override { return script_.is_free; }
  News news(const std::string&, WallTime) const override { return script_.news; }
  bool set_record(const std::optional<std::string>& text) override {
    return std::exchange(script_.record, text) != text;
  }
  SourceCounters counters() const override {
    return {1, static_cast<std::uint64_t>(script_.asked), 1};
  }

 private:
  std::string name_;
  Script& script_;
};

QueryFailure because(SlurmFailure cause, const std::string& detail = "why") {
  return {cause, detail};
}
QueryResult failed(SlurmFailure cause, const std::string& detail = "why") {
  return {std::nullopt, because(cause, detail), std::nullopt};
}
QueryResult record() { return {node::SlurmNodeRecord{}, std::nullopt, std::nullopt}; }

class AutoSourceTest : public testing::Test {
 protected:
  std::optional<QueryFailure> ask() { return source_.ask("n1", Query::kOneNode, clock_.now()); }
  std::optional<QueryResult> poll() { return source_.poll(clock_.now()); }
  // A question that the preferred source fails and the next one answers.
  void fall_back() {
    ASSERT_FALSE(ask());
    rest_.answer = failed(SlurmFailure::kRestUnavailable, "connection refused");
    ASSERT_FALSE(poll());
    sinfo_.answer = record();
    ASSERT_TRUE(poll()->record);
  }
  static std::vector<std::unique_ptr<NodeSource>> sources(Script& rest, Script& sinfo) {
    std::vector<std::unique_ptr<NodeSource>> all;
    all.push_back(std::make_unique<ScriptedSource>("rest", rest));
    all.push_back(std::make_unique<ScriptedSource>("sinfo", sinfo));
    return all;
  }

  fakes::FakeClock clock_;
  Script rest_, sinfo_;
  std::vector<std::string> told_;
  AutoSource source_{sources(rest_, sinfo_),
                     [this](bool worse, const std::string& change) {
                       told_.push_back((worse ? "! " : "") + change);
                     },
                     [] { return 0.5; }};
};

TEST_F(AutoSourceTest, EachSourceIsAskedTheSameQuery) {
  ASSERT_FALSE(source_.ask("n1", Query::kFull, clock_.now()));
  EXPECT_EQ(rest_.query, Query::kFull);
  rest_.answer = failed(SlurmFailure::kRestUnavailable);
  ASSERT_FALSE(poll());
  EXPECT_EQ(sinfo_.query, Query::kFull);
}

TEST_F(AutoSourceTest, AsksThePreferredOneOnly) {
  EXPECT_EQ(source_.name(), "rest");
  EXPECT_FALSE(source_.busy());
  EXPECT_EQ(source_.wake_at(), kNever);
  ASSERT_FALSE(ask());
  EXPECT_TRUE(source_.busy());
  EXPECT_EQ(source_.wake_at(), SteadyTime{seconds{4}});
  EXPECT_THAT(source_.wake_fds(), ElementsAre(4));
  EXPECT_FALSE(poll());
  rest_.answer = record();
  EXPECT_TRUE(poll()->record);
  EXPECT_FALSE(source_.busy());
  EXPECT_THAT(source_.wake_fds(), IsEmpty());
  EXPECT_EQ(rest_.node, "n1");
  EXPECT_EQ(sinfo_.asked, 0);
  EXPECT_THAT(told_, IsEmpty());
}

class OwnCause : public AutoSourceTest, public testing::WithParamInterface<SlurmFailure> {};
INSTANTIATE_TEST_SUITE_P(
    Causes, OwnCause,
    testing::Values(SlurmFailure::kCommandMissing, SlurmFailure::kRestUnavailable,
                    SlurmFailure::kTokenRefused, SlurmFailure::kRecordUnavailable,
                    SlurmFailure::kBadConfiguration, SlurmFailure::kFileSystemHangs));

TEST_P(OwnCause, LetsTheNextOneAnswerTheSameQuestion) {
  ASSERT_FALSE(ask());
  rest_.answer = failed(GetParam(), "it is broken");
  EXPECT_FALSE(poll());
  EXPECT_TRUE(source_.busy());
  EXPECT_EQ(source_.wake_at(), SteadyTime{seconds{5}});
  EXPECT_THAT(source_.wake_fds(), ElementsAre(5));
  EXPECT_EQ(sinfo_.node, "n1");
  sinfo_.answer = record();
  EXPECT_TRUE(poll()->record);
  EXPECT_EQ(source_.name(), "sinfo");
  EXPECT_THAT(told_, ElementsAre("! uses sinfo instead of rest: it is broken"));
}

TEST_P(OwnCause, AtTheBeginningCountsToo) {
  rest_.cannot_begin = because(GetParam());
  ASSERT_FALSE(ask());
  EXPECT_TRUE(sinfo_.busy);
}

class OthersCause : public AutoSourceTest, public testing::WithParamInterface<SlurmFailure> {};
INSTANTIATE_TEST_SUITE_P(Causes, OthersCause,
                         testing::Values(SlurmFailure::kControllerUnreachable,
                                         SlurmFailure::kTimeout, SlurmFailure::kMungeUnavailable,
                                         SlurmFailure::kAuthenticationRefused,
                                         SlurmFailure::kClockSkew, SlurmFailure::kPermissionDenied,
                                         SlurmFailure::kNotInSlurm, SlurmFailure::kGarbage,
                                         SlurmFailure::kRateLimited, SlurmFailure::kNodeUnknown,
                                         SlurmFailure::kSackUnavailable,
                                         SlurmFailure::kOtherCluster));

TEST_P(OthersCause, DoesNotSwitch) {
  ASSERT_FALSE(ask());
  rest_.answer = failed(GetParam());
  EXPECT_EQ(poll()->failure->cause, GetParam());
  rest_.cannot_begin = because(GetParam());
  EXPECT_EQ(ask()->cause, GetParam());
  EXPECT_FALSE(source_.busy());
  EXPECT_EQ(sinfo_.asked, 0);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(AutoSourceTest, StaysWithTheNextOneForTenMinutesAndGoesBack) {
  fall_back();
  clock_.advance(minutes{10} - seconds{1});
  ASSERT_FALSE(ask());
  EXPECT_EQ(rest_.asked, 1);
  sinfo_.answer = failed(SlurmFailure::kControllerUnreachable);
  EXPECT_TRUE(poll()->failure);
  EXPECT_EQ(source_.name(), "sinfo");
  clock_.advance(seconds{1});
  ASSERT_FALSE(ask());
  EXPECT_EQ(rest_.asked, 2);
  rest_.answer = record();
  EXPECT_TRUE(poll()->record);
  EXPECT_EQ(source_.name(), "rest");
  EXPECT_THAT(told_, ElementsAre("! uses sinfo instead of rest: connection refused", "uses rest"));
}

TEST_F(AutoSourceTest, ThePreferredOneThatStillFailsDisturbsNobody) {
  fall_back();
  for (int i = 0; i < 3; ++i) {
    clock_.advance(delay_rule(Delay::kPreferAgain).to);
    fall_back();
  }
  EXPECT_EQ(rest_.asked, 4);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(AutoSourceTest, AControllerThatIsDownIsAnAnswerOfThePreferredOne) {
  fall_back();
  clock_.advance(delay_rule(Delay::kPreferAgain).to);
  ASSERT_FALSE(ask());
  rest_.answer = failed(SlurmFailure::kControllerUnreachable);
  EXPECT_EQ(poll()->failure->cause, SlurmFailure::kControllerUnreachable);
  EXPECT_EQ(source_.name(), "rest");
}

TEST_F(AutoSourceTest, TheNextOneThatFailsItselfGivesThePreferredOneItsTurn) {
  fall_back();
  ASSERT_FALSE(ask());
  sinfo_.answer = failed(SlurmFailure::kCommandMissing, "sinfo is not installed");
  EXPECT_FALSE(poll());
  rest_.answer = record();
  EXPECT_TRUE(poll()->record);
  EXPECT_EQ(source_.name(), "rest");
  EXPECT_EQ(told_.back(), "! uses rest instead of sinfo: sinfo is not installed");
}

TEST_F(AutoSourceTest, WhenAllFailItSaysAllInOneOrder) {
  rest_.cannot_begin = because(SlurmFailure::kRestUnavailable, "connection refused");
  sinfo_.cannot_begin = because(SlurmFailure::kCommandMissing, "sinfo is not installed");
  for (int i = 0; i < 3; ++i) {
    const auto failure = ask();
    ASSERT_TRUE(failure);
    EXPECT_EQ(*failure, because(SlurmFailure::kRestUnavailable,
                                "connection refused; sinfo: sinfo is not installed"));
    EXPECT_FALSE(source_.busy());
  }
  rest_.cannot_begin.reset();
  ASSERT_FALSE(ask());
  rest_.answer = failed(SlurmFailure::kRestUnavailable, "connection refused");
  EXPECT_EQ(poll()->failure->detail, "connection refused; sinfo: sinfo is not installed");
  EXPECT_THAT(told_, IsEmpty());
}

// The preferred source is one that costs nothing and has news by itself.
class FreeSourceTest : public AutoSourceTest {
 protected:
  FreeSourceTest() : source_(make()) {}
  AutoSource make() {
    rest_.is_free = true;
    rest_.cannot_begin = because(SlurmFailure::kRecordUnavailable, "there is none");
    return {sources(rest_, sinfo_),
            [this](bool worse, const std::string& change) {
              told_.push_back((worse ? "! " : "") + change);
            },
            [] { return 0.5; }};
  }
  std::optional<QueryFailure> ask() { return source_.ask("n1", Query::kOneNode, clock_.now()); }
  void have_record() {
    rest_.cannot_begin.reset();
    rest_.news = News::kAnswer;
    ASSERT_EQ(source_.news("n1", clock_.now().wall), News::kAnswer);
    ASSERT_FALSE(ask());
    rest_.news = News::kNone;
    EXPECT_TRUE(source_.is_free()) << "the question under way is";
    rest_.answer = record();
    ASSERT_TRUE(source_.poll(clock_.now())->record);
  }
  AutoSource source_;
};

TEST_F(FreeSourceTest, IsNotInUseBeforeItHasNews) {
  EXPECT_EQ(source_.name(), "sinfo");
  EXPECT_FALSE(source_.is_free());
  ASSERT_FALSE(ask());
  EXPECT_EQ(rest_.asked, 1);
  EXPECT_EQ(sinfo_.asked, 1);
  EXPECT_FALSE(source_.is_free()) << "sinfo is under way";
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(FreeSourceTest, ItsAnswerIsTakenAtOnceAndItsFailureIsNothingWhileAnotherIsUsed) {
  rest_.news = News::kFailure;
  EXPECT_EQ(source_.news("n1", clock_.now().wall), News::kNone);
  ASSERT_FALSE(ask());
  sinfo_.answer = record();
  ASSERT_TRUE(source_.poll(clock_.now())->record);
  have_record();
  EXPECT_EQ(sinfo_.asked, 1);
  EXPECT_TRUE(source_.is_free());
  EXPECT_THAT(told_, ElementsAre("uses rest"));
  rest_.news = News::kFailure;
  EXPECT_EQ(source_.news("n1", clock_.now().wall), News::kFailure);
}

// It fails for all nodes at the same moment: the next source is asked when each node's time comes.
TEST_F(FreeSourceTest, WhereNobodyEverWroteARecordItsLackIsNoFailure) {
  sinfo_.cannot_begin = because(SlurmFailure::kCommandMissing, "sinfo is not installed");
  const auto ask = [this] { return source_.ask("n1", Query::kOneNode, clock_.now()); };
  EXPECT_EQ(ask(), sinfo_.cannot_begin);
  (void)source_.set_record("");
  EXPECT_EQ(ask(), sinfo_.cannot_begin);
  (void)source_.set_record("unusable");
  EXPECT_EQ(ask(), because(SlurmFailure::kRecordUnavailable,
                           "there is none; sinfo: sinfo is not installed"));
}

TEST_F(FreeSourceTest, IsReplacedAtTheNextQuestion) {
  have_record();
  rest_.cannot_begin = because(SlurmFailure::kRecordUnavailable, "it is too old");
  const auto failure = ask();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, SlurmFailure::kRecordUnavailable);
  EXPECT_FALSE(source_.busy());
  EXPECT_FALSE(source_.is_free());
  EXPECT_EQ(sinfo_.asked, 0);
  EXPECT_THAT(told_, ElementsAre("uses rest", "! uses sinfo instead of rest: it is too old"));
  ASSERT_FALSE(ask());
  EXPECT_EQ(sinfo_.asked, 1);
  sinfo_.answer = record();
  ASSERT_TRUE(source_.poll(clock_.now())->record);
  have_record();
  EXPECT_EQ(told_.back(), "uses rest");
}

TEST_F(AutoSourceTest, HandsTheRecordToAll) {
  EXPECT_TRUE(source_.set_record("x"));
  EXPECT_EQ(rest_.record, "x");
  EXPECT_EQ(sinfo_.record, "x");
  EXPECT_FALSE(source_.set_record("x"));
}

TEST_F(AutoSourceTest, TellsAllOfThePlace) {
  const ClusterPlace place{"/run/slurm/conf/slurm.conf", "", ""};
  source_.set_place(place);
  EXPECT_EQ(rest_.place, place);
  EXPECT_EQ(sinfo_.place, place);
}

TEST_F(AutoSourceTest, AddsUpWhatTheSourcesCost) {
  fall_back();
  const SourceCounters counters = source_.counters();
  EXPECT_EQ(counters.commands, 2U);
  EXPECT_EQ(counters.requests, 2U);
  EXPECT_EQ(counters.full_queries, 2U);
}

}  // namespace auto_source_test
}  // namespace slurmlet::slurm
