#include "kube/watch.h"

#include "base/delay.h"
#include "kube/list_watch.h"
#include "kube/watch_fixture.h"

namespace slurmlet::kube {
namespace watch_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Type = WatchEvent<Pod>::Type;

// As kube-apiserver 1.36 says that a resourceVersion is of the future.
constexpr const char* kTooLarge =
    R"(,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large"}]})";

class WatchTest : public ::testing::Test, protected WatchRig {};

TEST_F(WatchTest, ListsThenWatchesFromTheListsVersion) {
  client_.answer(200, list_json("100", pod_json("a", "7") + "," + pod_json("b", "9")));
  EXPECT_EQ(step(), clock_.now().steady);
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  ASSERT_EQ(events_[0].objects.size(), 2U);
  EXPECT_EQ(events_[0].objects[1].name, "b");
  EXPECT_THAT(client_.last().path, AllOf(HasSubstr("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"),
                                         HasSubstr("&resourceVersion=0")))
      << "the API server may answer from memory";
  step();
  ASSERT_EQ(opened(), 1U);
  EXPECT_EQ(resumed_from(), "100");
  EXPECT_THAT(client_.stream_requests[0].path,
              AllOf(HasSubstr("?fieldSelector=spec.nodeName%3Dn1"), HasSubstr("&watch=true"),
                    HasSubstr("&allowWatchBookmarks=true"), HasSubstr("&timeoutSeconds=")));
  EXPECT_FALSE(watch_->last_error());
}

TEST_F(WatchTest, AfterAWriteOfTheOnlyObjectItNeedsNoList) {
  watch_->watch_from("7");
  step();
  EXPECT_EQ(resumed_from(), "7");
  watch_->watch_from("6");
  EXPECT_EQ(watch_->position(), "7") << "it goes on where it is";
}

TEST_F(WatchTest, AnEmptyListIsTold) {
  client_.answer(200, R"({"metadata":{"resourceVersion":"1"},"items":null})");
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  EXPECT_THAT(events_[0].objects, IsEmpty());
}

TEST(WatchOwnNodeTest, SelectsItsOwnName) {
  fakes::FakeHttpClient client;
  fakes::FakeClock clock;
  const auto watch = watch_own_node(client, "n1", {}, [] { return 0.0; });
  client.answer(200, R"({"metadata":{"resourceVersion":"3"},
                         "items":[{"metadata":{"name":"n1","uid":"u"}}]})");
  std::vector<WatchEvent<node::ObservedNode>> events;
  watch->step(clock.now(), events);
  EXPECT_THAT(client.last().path, AllOf(HasSubstr("/api/v1/nodes?fieldSelector=metadata.name%3Dn1"),
                                        Not(HasSubstr("resourceVersion"))))
      << "an old list without the Node would look like its deletion";
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].objects.at(0).uid, "u");
}

TEST_F(WatchTest, TellsEventsHoweverTheyAreCut) {
  connect();
  const std::string text = line("ADDED", pod_json("a", "101")) +
                           line("MODIFIED", pod_json("a", "102")) + bookmark("103") +
                           line("DELETED", pod_json("a", "104"));
  std::vector<std::pair<Type, std::string>> told;
  for (const char byte : text) {
    client_.stream().feed(std::string(1, byte));
    step();
    for (const auto& event : events_) {
      told.emplace_back(event.type, event.objects.at(0).name);
    }
  }
  EXPECT_THAT(told, ElementsAre(Pair(Type::kAdded, "a"), Pair(Type::kModified, "a"),
                                Pair(Type::kDeleted, "a")));
}

// After which pause it goes on, and where.
TEST_F(WatchTest, HowAStreamEnds) {
  const Error reset{Code::kUnavailable, "connection reset by peer"};
  const struct {
    const char* what;
    Duration life;
    std::string last;  // bytes
    std::optional<Error> error;
    Delay delay;
    Code problem;  // kCancelled: none
    bool lists = false;
  } rows[] = {
      {"at once", seconds{2}, "", {}, Delay::kWatchRetry, Code::kCancelled},
      {"early", minutes{10}, "", {}, Delay::kWatchLost, Code::kCancelled},
      {"broken", minutes{10}, "", reset, Delay::kWatchLost, Code::kUnavailable},
      // Its own, which was chosen by chance: nobody else returns at that moment.
      {"at its time", hours{2} - seconds{2}, "", {}, Delay::kWatchExpired, Code::kCancelled},
      {"gone",
       hours{1},
       line("ERROR", status_json(410, "Expired")),
       {},
       Delay::kRelist,
       Code::kGone,
       true},
      {"error",
       minutes{1},
       line("ERROR", status_json(500, "InternalError")),
       {},
       Delay::kWatchRetry,
       Code::kInternal},
      {"error that is no Status",
       minutes{1},
       line("ERROR", R"({"a":1})"),
       {},
       Delay::kWatchRetry,
       Code::kInternal},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    WatchRig rig;
    rig.connect();
    rig.clock_.advance(row.life);
    rig.client_.stream().feed(bookmark("250") + row.last);
    if (row.error) {
      rig.client_.stream().break_off(*row.error);
    } else if (row.last.empty()) {
      rig.client_.stream().end();
    }
    const Duration pause = rig.until_wake();
    EXPECT_GT(pause, delay_rule(row.delay).from);
    EXPECT_LE(pause, delay_rule(row.delay).to);
    EXPECT_EQ(rig.problem(), row.problem);
    EXPECT_TRUE(rig.client_.streams[0]->closed);
    rig.clock_.advance(pause - milliseconds{1});
    rig.client_.answer(200, list_json("300"));
    rig.step();
    EXPECT_EQ(rig.listed() + rig.opened(), 2U) << "too early";
    rig.clock_.advance(milliseconds{1});
    rig.step();
    rig.step();
    EXPECT_EQ(rig.listed(), row.lists ? 2U : 1U);
    ASSERT_EQ(rig.opened(), 2U);
    EXPECT_EQ(rig.resumed_from(), row.lists ? "300" : "250");
    rig.client_.stream().status = 200;
    rig.step();
    EXPECT_FALSE(rig.watch_->last_error());
  }
}

// An API server that stops, or a load balancer that moves its clients, ends all watches at once.
TEST_F(WatchTest, ThoseThatEndTogetherReturnOneByOne) {
  std::vector<Duration> pauses;
  for (const double random : {0.01, 0.99}) {
    WatchRig rig;
    rig.random_ = random;
    rig.connect();
    rig.clock_.advance(minutes{10});
    rig.client_.stream().end();
    pauses.push_back(rig.until_wake());
  }
  EXPECT_GT(pauses[1] - pauses[0], seconds{15});
}

TEST_F(WatchTest, TakesTheEventsThatCameWithTheEnd) {
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone);
    WatchRig rig;
    rig.connect();
    rig.clock_.advance(seconds{6});
    rig.client_.stream().feed(line("ADDED", pod_json("a", "101")));
    if (gone) {
      rig.client_.stream().feed(line("ERROR", status_json(410, "Expired")) +
                                line("ADDED", pod_json("b", "102")));
    }
    rig.client_.stream().end();
    const Duration pause = rig.until_wake();
    ASSERT_EQ(rig.events_.size(), 1U) << "what came after an error does not count";
    rig.clock_.advance(pause);
    rig.client_.answer(200, list_json("300", pod_json("c", "299")));
    rig.step();
    if (gone) {
      ASSERT_EQ(rig.events_.size(), 1U);
      EXPECT_EQ(rig.events_[0].type, Type::kReplaced);
      EXPECT_EQ(rig.events_[0].objects.at(0).name, "c");
    } else {
      EXPECT_EQ(rig.resumed_from(), "101");
    }
  }
}

TEST_F(WatchTest, ShortStreamsBackOffUntilOneLasts) {
  connect();
  const DelayRule& rule = delay_rule(Delay::kWatchRetry);
  Duration last{};
  for (int i = 0; i < 9; ++i) {
    client_.stream().status = 200;
    client_.stream().end();
    const Duration pause = wait();
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, rule.cap);
    EXPECT_EQ(opened(), static_cast<std::size_t>(i) + 2);
    last = pause;
  }
  EXPECT_GT(last, rule.to);
  EXPECT_EQ(listed(), 1U);
  client_.stream().status = 200;
  step();
  clock_.advance(seconds{6});
  client_.stream().feed(line("ERROR", status_json(500, "InternalError")));
  EXPECT_LE(until_wake(), rule.to);
}

TEST_F(WatchTest, RefusalsOfTheWatch) {
  const struct {
    int http;
    const char* reason;
    Code code;
    bool lists_again;
    const char* more = "";
  } table[] = {
      {400, "BadRequest", Code::kInvalid, true},
      {401, "Unauthorized", Code::kDenied, false},
      {403, "Forbidden", Code::kDenied, false},
      {404, "NotFound", Code::kNotFound, true},
      {410, "Gone", Code::kGone, true},
      {429, "TooManyRequests", Code::kUnavailable, false},
      {500, "InternalError", Code::kInternal, false},
      {503, "ServiceUnavailable", Code::kUnavailable, false},
      {504, "Timeout", Code::kTimeout, false},  // of a load balancer, or of a server that is slow
      {504, "Timeout", Code::kGone, true, kTooLarge},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.http);
    WatchRig rig;
    rig.client_.answer(200, list_json("100"));
    rig.step();
    rig.step();
    rig.client_.stream().status = row.http;
    rig.client_.stream().feed(status_json(row.http, row.reason, row.more));
    rig.step();
    EXPECT_FALSE(rig.client_.streams[0]->closed) << "the body may still be coming";
    rig.client_.stream().end();
    rig.client_.answer(200, list_json("200"));
    EXPECT_GT(rig.until_wake(), Duration::zero());
    EXPECT_EQ(rig.problem(), row.code);
    EXPECT_THAT(rig.watch_->last_error()->message,
                AllOf(HasSubstr("/api/v1/pods"), HasSubstr("too old")));
    rig.wait();
    EXPECT_EQ(rig.listed(), row.lists_again ? 2U : 1U);
    EXPECT_EQ(rig.opened(), row.lists_again ? 1U : 2U);
  }
}

TEST_F(WatchTest, AnAnswerWithoutEndOrHeadersIsGivenUp) {
  for (const bool answers : {true, false}) {
    SCOPED_TRACE(answers);
    WatchRig rig;
    rig.client_.answer(200, list_json("100"));
    rig.step();
    rig.step();
    if (answers) {
      rig.client_.stream().status = 503;
      rig.client_.stream().feed("<html>proxy is");
    }
    EXPECT_LE(rig.wait(), Duration{seconds{25}});
    EXPECT_TRUE(rig.client_.streams[0]->closed);
    EXPECT_EQ(rig.problem(), answers ? Code::kUnavailable : Code::kTimeout);
    rig.wait();
    EXPECT_EQ(rig.opened(), 2U) << "that says nothing about the resourceVersion";
    EXPECT_EQ(rig.resumed_from(), "100");
  }
}

TEST_F(WatchTest, GarbageIsCuredByAList) {
  const std::string table[] = {
      "not json\n",
      "{}\n",
      "[1,2]\n",
      "\"text\"\n",
      line("ADDED", "null"),
      line("ADDED", "[]"),
      line("ADDED", R"({"metadata":{"resourceVersion":"101"}})"),
      line("ADDED", R"({"metadata":{"namespace":"d","name":"a","uid":"u"}})"),
      line("SURPRISE", pod_json("a", "101")),
      line("BOOKMARK", "{}"),
      std::string(ListWatch::kMaxObjectBytes + 1, 'x'),
  };
  for (const std::string& text : table) {
    SCOPED_TRACE(text.substr(0, 60));
    WatchRig rig;
    rig.connect();
    rig.client_.stream().feed(text);
    const Duration pause = rig.until_wake();
    EXPECT_GT(pause, Duration::zero()) << "garbage for ever must not become a busy loop";
    EXPECT_THAT(rig.events_, IsEmpty());
    EXPECT_TRUE(rig.client_.streams[0]->closed);
    ASSERT_TRUE(rig.watch_->last_error());
    rig.client_.answer(200, list_json("200"));
    rig.clock_.advance(pause);
    rig.step();
    EXPECT_EQ(rig.events_.size(), 1U);
    EXPECT_FALSE(rig.watch_->last_error());
  }
}

TEST_F(WatchTest, ASilentStreamIsReplacedAndOneWithBookmarksStays) {
  connect();
  for (int minute = 0; minute < 60; ++minute) {
    clock_.advance(minutes{1});
    client_.stream().feed(bookmark(std::to_string(1000 + minute)));
    EXPECT_GE(until_wake(), ListWatch::kSilence);
  }
  EXPECT_EQ(opened(), 1U);
  EXPECT_EQ(listed(), 1U);
  clock_.advance(ListWatch::kSilence);
  EXPECT_LE(wait(), delay_rule(Delay::kWatchSilent).to);
  EXPECT_TRUE(client_.streams[0]->closed);
  EXPECT_GE(client_.idle_closures, 1) << "the other connections may be as dead";
  EXPECT_EQ(opened(), 2U);
  EXPECT_EQ(resumed_from(), "1059");
  EXPECT_EQ(problem(), Code::kUnavailable);
}

// A server restored from a backup is silent about a version of the future, on each connection.
TEST_F(WatchTest, StreamsThatNeverSaidAnythingAreCuredByAList) {
  connect();
  for (int silent = 1; silent < ListWatch::kSilentStreams; ++silent) {
    clock_.advance(ListWatch::kSilence);
    wait();
    EXPECT_EQ(resumed_from(), "100");
    client_.stream().status = 200;
    step();
  }
  EXPECT_EQ(listed(), 1U);
  clock_.advance(ListWatch::kSilence);
  client_.answer(200, list_json("50"));
  wait();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  step();
  EXPECT_EQ(resumed_from(), "50");
}

TEST_F(WatchTest, AFailingListIsTriedAgainWithBackOff) {
  const struct {
    std::optional<int> status;  // nothing: no connection
    std::string body;
    Code code;
  } rows[] = {{{}, "", Code::kUnavailable},
              {403, status_json(403, "Forbidden"), Code::kDenied},
              {200, "{\"items\":[]}", Code::kInternal},  // without resourceVersion
              {503, "", Code::kUnavailable}};
  Duration last{};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.body);
    if (row.status) {
      client_.answer(*row.status, row.body);
    } else {
      client_.fail({Code::kUnavailable, "connection refused"});
    }
    const Duration pause = until_wake();
    EXPECT_GE(pause, last);
    EXPECT_EQ(problem(), row.code);
    EXPECT_THAT(events_, IsEmpty());
    const std::size_t before = listed();
    clock_.advance(pause - milliseconds{1});
    step();
    EXPECT_EQ(listed(), before) << "not before its time";
    clock_.advance(milliseconds{1});
    last = pause;
  }
  EXPECT_GT(last, delay_rule(Delay::kWatchRetry).to);
}

TEST_F(WatchTest, AtRestItHoldsNoConnectionAndGoesOnWhereItWas) {
  connect();
  client_.stream().feed(bookmark("250"));
  step();
  watch_->rest();
  watch_->rest();
  EXPECT_TRUE(client_.streams[0]->closed);
  clock_.advance(hours{1});
  step();
  ASSERT_EQ(opened(), 2U);
  EXPECT_EQ(resumed_from(), "250");
  EXPECT_EQ(listed(), 1U);
}

TEST_F(WatchTest, AnotherCredentialIsTriedSoonWhereTheOldOneWasDenied) {
  for (const int status : {401, 429}) {
    SCOPED_TRACE(status);
    WatchRig rig;
    rig.answer_busy(status);
    rig.step();
    rig.watch_->credential_replaced(rig.clock_.now().steady);
    rig.clock_.advance(delay_rule(Delay::kCredentialReplaced).to);
    rig.step();
    EXPECT_EQ(rig.listed(), status == 401 ? 2U : 1U);
  }
}

TEST_F(WatchTest, WaitsAsLongAsAnOverloadedServerAsks) {
  random_ = 0.0;
  answer_busy(429);
  EXPECT_GE(until_wake(), seconds{17});
  clock_.advance(seconds{17});
  client_.answer(200, list_json("100"));
  step();
  step();
  client_.stream().status = 429;
  client_.stream().retry_after = seconds{17};
  client_.stream().end();
  EXPECT_GE(wait(), seconds{17});
  EXPECT_EQ(opened(), 2U);
}

TEST_F(WatchTest, CountsListsAndWatches) {
  connect();
  client_.stream().end();
  wait();
  client_.stream().status = 403;
  client_.stream().end();
  step();
  EXPECT_THAT(counter_.snapshot(),
              ElementsAre(Pair(Pair("LIST", 200), 1), Pair(Pair("WATCH", 200), 1),
                          Pair(Pair("WATCH", 403), 1)));
}

}  // namespace watch_test
}  // namespace slurmlet::kube
