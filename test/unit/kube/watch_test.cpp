#include "kube/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "kube/list_watch.h"

namespace slurmlet::kube {
namespace watch_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Type = WatchEvent<Pod>::Type;

std::string pod_json(const std::string& name, const std::string& version) {
  return R"({"metadata":{"namespace":"d","name":")" + name + R"(","uid":"uid-)" + name +
         R"(","resourceVersion":")" + version + R"("}})";
}
std::string line(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
std::string bookmark(const std::string& version) {
  return line("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":")" + version + R"("}})");
}
std::string list_json(const std::string& version, const std::string& items = "") {
  return R"({"kind":"PodList","metadata":{"resourceVersion":")" + version + R"("},"items":[)" +
         items + "]}";
}
std::string status_json(int code, const std::string& reason, const std::string& more = "") {
  return R"({"kind":"Status","status":"Failure","message":"too old","reason":")" + reason +
         R"(","code":)" + std::to_string(code) + more + "}";
}
// As kube-apiserver 1.36 says that a resourceVersion is of the future.
constexpr const char* kTooLarge =
    R"(,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large"}]})";

class WatchTest : public ::testing::Test {
 protected:
  WatchTest()
      : watch_(watch_own_pods(client_, "n1", {&counter_, {}}, [this] { return random_; })) {}

  SteadyTime step() {
    events_.clear();
    return watch_->step(clock_.now(), events_);
  }
  Duration until_wake() { return step() - clock_.now().steady; }

  // Listed at `version` and streaming.
  void connect(const std::string& version = "100") {
    client_.answer(200, list_json(version));
    step();
    step();
    ASSERT_EQ(client_.streams.size(), 1U);
    client_.stream().status = 200;
    step();
    events_.clear();
  }
  std::size_t opened() const { return client_.stream_requests.size(); }
  std::size_t listed() const { return client_.requests.size(); }
  std::string resumed_from() const {
    const std::string& path = client_.stream_requests.back().path;
    const std::string key = "&resourceVersion=";
    const auto at = path.find(key) + key.size();
    return path.substr(at, path.find('&', at) - at);
  }

  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  RequestCounter counter_;
  double random_ = 0.5;
  std::unique_ptr<Watch<Pod>> watch_;
  std::vector<WatchEvent<Pod>> events_;
};

TEST_F(WatchTest, ListsThenWatchesFromTheListsVersion) {
  client_.answer(200, list_json("100", pod_json("a", "7") + "," + pod_json("b", "9")));
  EXPECT_EQ(step(), clock_.now().steady);
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  ASSERT_EQ(events_[0].objects.size(), 2U);
  EXPECT_EQ(events_[0].objects[1].name, "b");
  EXPECT_EQ(client_.last().method, "GET");
  EXPECT_EQ(client_.last().path, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0")
      << "the API server may answer from memory";

  step();
  ASSERT_EQ(opened(), 1U);
  EXPECT_EQ(client_.stream_requests[0].path,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&watch=true&allowWatchBookmarks=true"
            "&resourceVersion=100&timeoutSeconds=7200");
  EXPECT_EQ(client_.stream_requests[0].timeout, Duration{seconds{10}});
  EXPECT_FALSE(watch_->last_error());
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
  EXPECT_EQ(client.last().path, "/api/v1/nodes?fieldSelector=metadata.name%3Dn1")
      << "an old list without the Node would look like its deletion";
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].objects.at(0).uid, "u");
  watch->step(clock.now(), events);
  EXPECT_THAT(client.stream_requests.at(0).path, HasSubstr("timeoutSeconds=3600"));
}

TEST_F(WatchTest, TheServerSideTimeoutIsTwoHoursGiveOrTakeHalf) {
  random_ = 0.999;
  client_.answer(200, list_json("1"));
  step();
  step();
  EXPECT_THAT(client_.stream_requests[0].path, HasSubstr("timeoutSeconds=10792"));
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

// An API server that stops, or a load balancer that moves its clients, ends all watches at once.
TEST_F(WatchTest, AStreamThatEndsEarlyIsResumedAfterAJitter) {
  const struct {
    double random;
    Duration pause;
  } kRows[] = {{0.1, seconds{3}}, {0.5, seconds{15}}, {0.999999, seconds{30}}};
  for (const bool orderly : {true, false}) {
    for (const auto& row : kRows) {
      fakes::FakeHttpClient client;
      const auto watch = watch_own_pods(client, "n1", {}, [&] { return row.random; });
      std::vector<WatchEvent<Pod>> events;
      client.answer(200, list_json("100"));
      watch->step(clock_.now(), events);
      watch->step(clock_.now(), events);
      client.stream().status = 200;
      watch->step(clock_.now(), events);
      clock_.advance(minutes{10});
      client.stream().feed(bookmark("250"));
      if (orderly) {
        client.stream().end();
      } else {
        client.stream().break_off({Code::kUnavailable, "connection reset by peer"});
      }
      const Duration pause = watch->step(clock_.now(), events) - clock_.now().steady;
      EXPECT_EQ(std::chrono::round<milliseconds>(pause), row.pause);
    }
  }
}

// Each at its own time, which was chosen by chance: nobody else does at that moment.
TEST_F(WatchTest, ResumesAStreamThatEndsAtItsTimeFromItsLastVersion) {
  connect();
  client_.stream().feed(line("ADDED", pod_json("a", "101")) + bookmark("250"));
  step();
  clock_.advance(seconds{7200} - seconds{2});
  client_.stream().feed(bookmark("250"));
  client_.stream().end();
  EXPECT_EQ(until_wake(), Duration{milliseconds{500}});
  EXPECT_TRUE(client_.streams[0]->closed);
  clock_.advance(milliseconds{500});
  step();
  ASSERT_EQ(opened(), 2U);
  EXPECT_EQ(resumed_from(), "250");
  EXPECT_EQ(listed(), 1U);
  EXPECT_FALSE(watch_->last_error()) << "an orderly end is no error";
}

TEST_F(WatchTest, TakesTheEventsThatCameWithTheEnd) {
  connect();
  clock_.advance(seconds{6});
  client_.stream().feed(line("ADDED", pod_json("a", "101")));
  client_.stream().end();
  const Duration pause = until_wake();
  EXPECT_EQ(events_.size(), 1U);
  clock_.advance(pause);
  step();
  EXPECT_EQ(resumed_from(), "101");
}

TEST_F(WatchTest, ResumesShortStreamsWithGrowingBackOff) {
  connect();
  std::vector<milliseconds> delays;
  random_ = 0.999999;
  for (int i = 0; i < 9; ++i) {
    client_.stream().status = 200;
    client_.stream().end();
    const Duration delay = until_wake();
    delays.push_back(std::chrono::round<milliseconds>(delay));
    const std::size_t before = opened();
    clock_.advance(delay - milliseconds{1});
    step();
    EXPECT_EQ(opened(), before) << "came too early";
    clock_.advance(milliseconds{1});
    step();
    EXPECT_EQ(opened(), before + 1);
  }
  EXPECT_THAT(delays, ElementsAre(seconds{20}, seconds{40}, seconds{60}, seconds{60}, seconds{60},
                                  seconds{60}, seconds{60}, seconds{60}, seconds{60}));
  EXPECT_EQ(listed(), 1U);
}

TEST_F(WatchTest, ABrokenStreamIsReportedUntilTheNextOneStands) {
  connect();
  clock_.advance(minutes{1});
  client_.stream().break_off({Code::kUnavailable, "connection reset by peer"});
  step();
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(*watch_->last_error(), (Error{Code::kUnavailable, "connection reset by peer"}));
  clock_.advance(seconds{15});
  step();
  ASSERT_EQ(opened(), 2U);
  client_.stream().status = 200;
  step();
  EXPECT_FALSE(watch_->last_error());
}

TEST_F(WatchTest, GoneWithinTheStreamListsAgainAfterAJitter) {
  connect();
  client_.stream().feed(line("ADDED", pod_json("a", "101")) +
                        line("ERROR", status_json(410, "Expired")) +
                        line("ADDED", pod_json("b", "102")));
  EXPECT_EQ(until_wake(), Duration{seconds{20}})
      << "half of the spread, which is longer than a short life's back-off";
  EXPECT_EQ(events_.size(), 1U) << "what came before the error counts, what came after does not";
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(watch_->last_error()->code, Code::kGone);
  EXPECT_TRUE(client_.streams[0]->closed);

  client_.answer(200, list_json("300", pod_json("c", "299")));
  clock_.advance(seconds{20});
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  EXPECT_EQ(events_[0].objects.at(0).name, "c");
  EXPECT_FALSE(watch_->last_error());
  step();
  EXPECT_EQ(resumed_from(), "300");
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
    fakes::FakeHttpClient client;
    fakes::FakeClock clock;
    const auto watch = watch_own_pods(client, "n1", {}, [] { return 0.5; });
    std::vector<WatchEvent<Pod>> events;
    client.answer(200, list_json("100"));
    watch->step(clock.now(), events);
    watch->step(clock.now(), events);
    client.stream().status = row.http;
    client.stream().feed(status_json(row.http, row.reason, row.more));
    watch->step(clock.now(), events);
    EXPECT_FALSE(client.streams[0]->closed) << "the body may still be coming";
    client.stream().end();
    const SteadyTime wake = watch->step(clock.now(), events);
    ASSERT_TRUE(watch->last_error());
    EXPECT_EQ(watch->last_error()->code, row.code);
    EXPECT_THAT(watch->last_error()->message, HasSubstr("WATCH /api/v1/pods: "));
    EXPECT_THAT(watch->last_error()->message, HasSubstr("too old"));
    EXPECT_GT(wake, clock.now().steady);
    clock.advance(wake - clock.now().steady);
    client.answer(200, list_json("200"));
    watch->step(clock.now(), events);
    EXPECT_EQ(client.requests.size(), row.lists_again ? 2U : 1U);
    EXPECT_EQ(client.stream_requests.size(), row.lists_again ? 1U : 2U);
  }
}

TEST_F(WatchTest, ARefusalWithoutEndIsGivenUp) {
  connect();
  clock_.advance(seconds{6});
  client_.stream().end();
  clock_.advance(until_wake());
  step();
  client_.stream().status = 503;
  client_.stream().feed("<html>proxy is");
  EXPECT_EQ(until_wake(), Duration{seconds{15}});
  clock_.advance(seconds{15});
  step();
  EXPECT_TRUE(client_.streams[1]->closed);
  ASSERT_TRUE(watch_->last_error());
  EXPECT_THAT(watch_->last_error()->message, HasSubstr("503 Service Unavailable: proxy is"));
}

TEST_F(WatchTest, NoHeadersInTimeIsATransportError) {
  client_.answer(200, list_json("100"));
  step();
  step();
  client_.stream().break_off({Code::kTimeout, "no answer in time"});
  EXPECT_EQ(until_wake(), Duration{milliseconds{12'500}});
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(watch_->last_error()->code, Code::kTimeout);
  clock_.advance(milliseconds{12'500});
  step();
  EXPECT_EQ(opened(), 2U) << "our own deadline says nothing about the resourceVersion";
  EXPECT_EQ(resumed_from(), "100");
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
    fakes::FakeHttpClient client;
    fakes::FakeClock clock;
    const auto watch = watch_own_pods(client, "n1", {}, [] { return 0.5; });
    std::vector<WatchEvent<Pod>> events;
    client.answer(200, list_json("100"));
    watch->step(clock.now(), events);
    watch->step(clock.now(), events);
    client.stream().status = 200;
    client.stream().feed(text);
    events.clear();
    const SteadyTime wake = watch->step(clock.now(), events);
    EXPECT_THAT(events, IsEmpty());
    EXPECT_TRUE(client.streams[0]->closed);
    ASSERT_TRUE(watch->last_error());
    EXPECT_GT(wake, clock.now().steady) << "garbage for ever must not become a busy loop";
    clock.advance(wake - clock.now().steady);
    client.answer(200, list_json("200"));
    watch->step(clock.now(), events);
    EXPECT_EQ(events.size(), 1U);
    EXPECT_FALSE(watch->last_error());
  }
}

TEST_F(WatchTest, AnErrorEventThatIsNoStatusIsSurvived) {
  connect();
  client_.stream().feed(line("ERROR", R"({"a":1})"));
  EXPECT_GT(until_wake(), Duration::zero());
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(watch_->last_error()->code, Code::kInternal);
}

TEST_F(WatchTest, NinetySilentSecondsOpenANewStream) {
  connect();
  clock_.advance(minutes{1});
  client_.stream().feed(bookmark("150"));
  EXPECT_EQ(until_wake(), Duration{seconds{90}});
  clock_.advance(seconds{90} - milliseconds{1});
  step();
  EXPECT_EQ(opened(), 1U);
  clock_.advance(milliseconds{1});
  EXPECT_LE(until_wake(), Duration{seconds{5}});
  EXPECT_TRUE(client_.streams[0]->closed);
  EXPECT_EQ(client_.idle_closures, 1) << "the other connections may be as dead";
  clock_.advance(until_wake());
  step();
  EXPECT_EQ(opened(), 2U);
  EXPECT_EQ(resumed_from(), "150");
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(watch_->last_error()->code, Code::kUnavailable);
}

// http::Silence: no list, though a whole site may be told so, and soon.
TEST_F(WatchTest, AStreamThatTheSilenceOfOthersEndsIsResumedWithinSeconds) {
  connect();
  clock_.advance(seconds{3});
  client_.stream().feed(bookmark("150"));
  step();
  client_.stream().break_off({Code::kTimeout, "another request got no answer"});
  EXPECT_LE(until_wake(), Duration{seconds{5}});
  clock_.advance(until_wake());
  step();
  EXPECT_EQ(opened(), 2U);
  EXPECT_EQ(listed(), 1U);
  EXPECT_EQ(resumed_from(), "150");
}

// A server restored from a backup is silent about a version of the future, on each connection.
TEST_F(WatchTest, StreamsThatNeverSaidAnythingAreCuredByAList) {
  connect("999999");
  for (int silent = 1; silent < ListWatch::kSilentStreams; ++silent) {
    clock_.advance(ListWatch::kSilence);
    clock_.advance(until_wake());
    step();
    EXPECT_EQ(resumed_from(), "999999");
    client_.stream().status = 200;
    step();
  }
  EXPECT_EQ(listed(), 1U);
  clock_.advance(ListWatch::kSilence);
  client_.answer(200, list_json("100"));
  clock_.advance(until_wake());
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  step();
  EXPECT_EQ(resumed_from(), "100");
}

TEST_F(WatchTest, GoneAfterALongLifeWaitsForTheJitterAlone) {
  connect();
  clock_.advance(hours{3});
  client_.stream().feed(line("ERROR", status_json(410, "Expired")));
  EXPECT_EQ(until_wake(), Duration{seconds{20}});
}

TEST_F(WatchTest, ALongLifeEndsTheBackOff) {
  for (int i = 0; i < 8; ++i) {
    client_.fail({Code::kUnavailable, "connection refused"});
    clock_.advance(until_wake());
  }
  connect();
  clock_.advance(seconds{6});
  client_.stream().feed(line("ERROR", status_json(500, "InternalError")));
  EXPECT_EQ(until_wake(), Duration{milliseconds{12'500}});
}

TEST_F(WatchTest, ASteadyWatchOpensNothingInAnHour) {
  connect();
  for (int minute = 0; minute < 60; ++minute) {
    clock_.advance(minutes{1});
    client_.stream().feed(bookmark(std::to_string(1000 + minute)));
    EXPECT_GE(until_wake(), Duration{seconds{90}});
  }
  EXPECT_EQ(opened(), 1U);
  EXPECT_EQ(listed(), 1U);
}

TEST_F(WatchTest, AFailingListIsTriedAgainWithBackOff) {
  client_.fail({Code::kUnavailable, "connection refused"});
  EXPECT_EQ(until_wake(), Duration{milliseconds{12'500}});
  ASSERT_TRUE(watch_->last_error());
  EXPECT_EQ(*watch_->last_error(), (Error{Code::kUnavailable, "connection refused"}));
  step();
  EXPECT_EQ(listed(), 1U) << "not before its time";

  clock_.advance(milliseconds{12'500});
  client_.answer(403, status_json(403, "Forbidden"));
  EXPECT_EQ(until_wake(), seconds{25});
  EXPECT_EQ(watch_->last_error()->code, Code::kDenied);

  clock_.advance(seconds{25});
  client_.answer(200, "{\"items\":[]}");
  EXPECT_GT(until_wake(), Duration::zero()) << "a list without resourceVersion is none";
  EXPECT_EQ(watch_->last_error()->code, Code::kInternal);
  EXPECT_THAT(events_, IsEmpty());
}

// --- a list that is too long

// The server: objects by name and size, and what it gives of them within the limit of a request.
class PagedListTest : public WatchTest {
 protected:
  struct Object {
    std::string name;
    std::size_t size;
  };
  // Answers the next request as the API server does; the client cuts what is too long.
  void serve() {
    client_.responder = [this](const http::Request& request) -> http::Response {
      const std::string& path = request.path;
      const auto number = [&path](const std::string& key, std::size_t absent) {
        const auto at = path.find(key);
        return at == std::string::npos ? absent : std::stoul(path.substr(at + key.size()));
      };
      const bool names = request.accept.find("PartialObjectMetadataList") != std::string::npos;
      const std::size_t from = number("&continue=", 0);
      const std::size_t to = std::min(objects_.size(), from + number("&limit=", objects_.size()));
      largest_page_ = std::max(largest_page_, to - from);
      std::string items;
      for (std::size_t i = from; i < to; ++i) {
        items += (i > from ? "," : "") + object(objects_[i], names);
      }
      const std::string token = to < objects_.size() ? std::to_string(to) : "";
      http::Response response;
      response.status = 200;
      response.body = R"({"metadata":{"resourceVersion":"700","continue":")" + token +
                      R"("},"items":[)" + items + "]}";
      response.is_cut = response.body.size() > request.max_body;
      EXPECT_TRUE(request.may_be_cut);
      most_bytes_ = std::max(most_bytes_, std::min(response.body.size(), request.max_body));
      return response;
    };
  }
  static std::string object(const Object& object, bool names_only) {
    const std::size_t padding = names_only ? 0 : object.size;
    return R"({"metadata":{"namespace":"d","name":")" + object.name + R"(","uid":"u-)" +
           object.name + R"("},"spec":{"x":")" + std::string(padding, 'x') + R"("}})";
  }
  // Steps until the list is complete; everything it gave, in order, as names.
  std::vector<std::string> list() {
    std::vector<std::string> names;
    for (int i = 0; i < 2000 && opened() == 0; ++i) {
      step();
      for (const auto& event : events_) {
        types_.push_back(event.type);
        for (const Pod& pod : event.objects) {
          names.push_back(pod.name);
        }
      }
    }
    EXPECT_FALSE(watch_->last_error());
    return names;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Object& object : objects_) {
      out.push_back(object.name);
    }
    return out;
  }

  std::vector<Object> objects_;
  std::vector<Type> types_;
  std::size_t largest_page_ = 0;
  std::size_t most_bytes_ = 0;
};

TEST_F(PagedListTest, OneThatFitsIsAskedForWhole) {
  objects_ = {{"a", 10}, {"b", 10}};
  serve();
  EXPECT_EQ(list(), names());
  EXPECT_EQ(listed(), 1U);
}

TEST_F(PagedListTest, TwentyLargeObjects) {
  for (int i = 0; i < 20; ++i) {
    objects_.push_back({"p" + std::to_string(i), 260'000});
  }
  serve();
  EXPECT_EQ(list(), names());
  EXPECT_THAT(types_, ElementsAre(Type::kReplaced)) << "the set as a whole, when it is whole";
  EXPECT_EQ(resumed_from(), "700");
  EXPECT_LE(listed(), 5U);
  EXPECT_LE(most_bytes_, std::size_t{4} << 20);
}

TEST_F(PagedListTest, ThousandsOfSmallObjectsTakeEverLargerPages) {
  for (int i = 0; i < 2000; ++i) {
    objects_.push_back({"p" + std::to_string(i), 2500});
  }
  serve();
  EXPECT_EQ(list(), names());
  EXPECT_LE(listed(), 40U);
  EXPECT_LE(most_bytes_, std::size_t{4} << 20);
}

TEST_F(PagedListTest, ThePagesShrinkToWhatFitsAndGrowAgain) {
  for (int i = 0; i < 200; ++i) {
    objects_.push_back({"p" + std::to_string(i), i == 100 ? 9'000'000U : 40'000U});
  }
  serve();
  EXPECT_EQ(list(), names());
  EXPECT_THAT(watch_->unreadable(), IsEmpty());
  EXPECT_LE(most_bytes_, ListWatch::kMaxObjectBytes);
}

TEST_F(PagedListTest, WhatIsTooLargeAloneIsLeftOutByNameAndLookedAtAgain) {
  objects_ = {{"a", 10}, {"huge", 11'000'000}, {"b", 10}};
  serve();
  EXPECT_THAT(list(), ElementsAre("a", "b"));
  EXPECT_THAT(watch_->unreadable(), ElementsAre("d/huge"));
  EXPECT_THAT(types_, ElementsAre(Type::kModified, Type::kModified))
      << "what could not be read was not deleted";
  ASSERT_EQ(opened(), 1U);
  client_.stream().status = 200;
  objects_[1].size = 10;
  const std::size_t before = listed();
  clock_.advance(minutes{3});
  client_.stream().feed(bookmark("800"));
  step();
  clock_.advance(minutes{1});
  client_.stream().feed(bookmark("801"));
  EXPECT_EQ(until_wake(), Duration{minutes{1}});
  EXPECT_EQ(listed(), before);
  clock_.advance(minutes{1});
  client_.stream().feed(bookmark("802"));
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].type, Type::kReplaced);
  EXPECT_EQ(events_[0].objects.size(), 3U);
  EXPECT_THAT(watch_->unreadable(), IsEmpty());
}

TEST_F(PagedListTest, AWaitForHeadersPastThatTimeDoesNotSpin) {
  objects_ = {{"huge", 11'000'000}};
  serve();
  list();
  clock_.advance(minutes{5});
  client_.stream().break_off({Code::kUnavailable, "reset"});
  EXPECT_GT(until_wake(), Duration::zero());
}

TEST_F(PagedListTest, ATokenThatExpiredStartsTheListAnew) {
  for (int i = 0; i < 40; ++i) {
    objects_.push_back({"p" + std::to_string(i), 200'000});
  }
  serve();
  while (client_.requests.empty() || client_.last().path.find("continue") == std::string::npos) {
    ASSERT_LE(until_wake(), Duration::zero());
  }
  client_.answer(410, status_json(410, "Expired"));
  EXPECT_GT(until_wake(), Duration::zero());
  EXPECT_EQ(watch_->last_error()->code, Code::kGone);
  clock_.advance(seconds{30});
  step();
  EXPECT_THAT(client_.last().path, Not(HasSubstr("continue")));
  EXPECT_EQ(list(), names()) << "nothing twice";
}

TEST_F(PagedListTest, AnErrorInBetweenGoesOnWithTheSamePage) {
  for (int i = 0; i < 40; ++i) {
    objects_.push_back({"p" + std::to_string(i), 200'000});
  }
  serve();
  while (client_.requests.empty() || client_.last().path.find("continue") == std::string::npos) {
    ASSERT_LE(until_wake(), Duration::zero());
  }
  client_.answer(503, "");
  EXPECT_GT(until_wake(), Duration::zero());
  clock_.advance(seconds{30});
  const std::string page = client_.last().path;
  EXPECT_EQ(list(), names());
  EXPECT_EQ(client_.last().path, page);
}

TEST_F(PagedListTest, AnEventThatIsTooLargeIsListed) {
  objects_ = {{"a", 10}};
  serve();
  list();
  client_.stream().status = 200;
  objects_.push_back({"huge", 11'000'000});
  client_.stream().feed(line("ADDED", object(objects_[1], false)));
  const Duration pause = until_wake();
  ASSERT_TRUE(watch_->last_error());
  EXPECT_THAT(watch_->last_error()->message, HasSubstr("longer than"));
  EXPECT_TRUE(client_.stream().closed);
  clock_.advance(pause);
  for (int i = 0; i < 10 && opened() == 1; ++i) {
    step();
  }
  EXPECT_THAT(watch_->unreadable(), ElementsAre("d/huge"));
  EXPECT_EQ(opened(), 2U) << "and the watch goes on behind it";
}

TEST_F(PagedListTest, AnObjectThatMakesNoSenseIsLeftOutAlone) {
  client_.answer(200, list_json("5", pod_json("a", "1") + R"(,{"metadata":{"name":"odd"}})"));
  step();
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].objects.at(0).name, "a");
  EXPECT_THAT(watch_->unreadable(), ElementsAre("/odd"));
  EXPECT_FALSE(watch_->last_error());
}

// --- a loop that is not stepped

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

TEST_F(WatchTest, WhatWasDeniedIsTriedSoonWithAnotherCredential) {
  http::Response response;
  response.status = 401;
  client_.answer(response);
  step();
  step();
  ASSERT_EQ(listed(), 1U);
  random_ = 0.5;
  watch_->credential_replaced(clock_.now().steady);
  clock_.advance(seconds{5});
  step();
  EXPECT_EQ(listed(), 2U);
}

TEST_F(WatchTest, AnOverloadedServerIsNotTriedAtOnceWithAnotherCredential) {
  http::Response response;
  response.status = 429;
  response.retry_after = seconds{17};
  client_.answer(response);
  step();
  watch_->credential_replaced(clock_.now().steady);
  const std::size_t before = listed();
  step();
  EXPECT_EQ(listed(), before);
}

TEST_F(WatchTest, WaitsAsLongAsAnOverloadedServerAsks) {
  http::Response response;
  response.status = 429;
  response.retry_after = seconds{17};
  client_.answer(response);
  random_ = 0.0;
  EXPECT_EQ(until_wake(), Duration{seconds{17}});
}

TEST_F(WatchTest, WaitsAsLongAsAServerAsksThatTakesNoWatch) {
  connect();
  clock_.advance(seconds{6});
  client_.stream().end();
  random_ = 0.0;
  step();
  client_.stream().status = 429;
  client_.stream().retry_after = seconds{17};
  client_.stream().feed("Too many requests, please try again later.\n");
  client_.stream().end();
  EXPECT_EQ(until_wake(), Duration{seconds{17}});
  clock_.advance(seconds{17});
  step();
  EXPECT_EQ(opened(), 3U);
  EXPECT_EQ(listed(), 1U);
}

TEST_F(WatchTest, CountsListsAndWatches) {
  connect();
  clock_.advance(seconds{6});
  client_.stream().end();
  clock_.advance(until_wake());
  step();
  client_.stream().status = 403;
  client_.stream().end();
  step();
  EXPECT_THAT(counter_.snapshot(),
              ElementsAre(Pair(Pair("LIST", 200), 1), Pair(Pair("WATCH", 200), 1),
                          Pair(Pair("WATCH", 403), 1)));
}

class MachineWatchTest : public ::testing::Test {
 protected:
  SteadyTime step() {
    events_.clear();
    return watch_->step(clock_.now(), events_);
  }
  // `resources`: one that each version has which is asked, in turn.
  void serve(const std::string& versions,
             const std::vector<std::string>& resources = {"machines"}) {
    client_.answer(200, R"({"groups":[{"name":"apps","versions":[{"version":"v1"}]},
                             {"name":"cluster.x-k8s.io","versions":[)" +
                            versions + "]}]}");
    for (const std::string& resource : resources) {
      client_.answer(200, R"({"resources":[{"name":"clusters"},{"name":")" + resource + R"("}]})");
    }
  }
  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  std::unique_ptr<Watch<Machine>> watch_ =
      watch_machines(client_, "ns/hpc", {}, [] { return 0.5; });
  std::vector<WatchEvent<Machine>> events_;
};

constexpr const char* kMachine = R"({"metadata":{"namespace":"ns","name":"m1","uid":"u",
  "resourceVersion":"7","deletionTimestamp":"2026-11-20T14:00:00Z","annotations":{
  "pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet":"",
  "slurmlet.io/drain-policy":"now"}},
  "spec":{"clusterName":"hpc","providerID":"metal3://a/b/c"},"status":{"initialization":{"infrastructureProvisioned":true},"nodeRef":{"name":"n1"},"addresses":[
  {"type":"Hostname","address":"hpc-1"},{"type":"InternalIP","address":"10.0.0.1"}]}})";

TEST_F(MachineWatchTest, ReadsTheNewestVersionThatIsKnown) {
  serve(R"({"version":"v1beta1"},{"version":"v1beta2"},{"version":"v9"})");
  client_.answer(200, list_json("100", kMachine));
  step();
  EXPECT_EQ(client_.requests[0].path, "/apis");
  EXPECT_EQ(client_.requests[1].path, "/apis/cluster.x-k8s.io/v1beta2");
  EXPECT_EQ(client_.requests[2].path,
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines"
            "?labelSelector=cluster.x-k8s.io%2Fcluster-name%3Dhpc");
  ASSERT_EQ(events_.size(), 1U);
  const Machine wanted{"v1beta2",
                       "ns",
                       "m1",
                       "u",
                       "7",
                       "hpc",
                       "n1",
                       "metal3://a/b/c",
                       true,
                       true,
                       "now",
                       {"hpc-1", "10.0.0.1"},
                       WallTime{fakes::FakeClock::kStart}};
  EXPECT_EQ(events_[0].objects.at(0), wanted);
}

TEST_F(MachineWatchTest, AnOlderServerHasTheOlderVersion) {
  serve(R"({"version":"v1beta1"})");
  client_.answer(200, list_json("100"));
  step();
  EXPECT_THAT(client_.last().path, HasSubstr("/v1beta1/"));
}

// Others of Cluster API's kinds outlive it where nobody is left to remove their finalizers.
TEST_F(MachineWatchTest, AGroupWithoutMachinesHasNone) {
  serve(R"({"version":"v1beta1"},{"version":"v1beta2"})", {"machinesets", "machines/status"});
  EXPECT_EQ(step() - clock_.now().steady, Duration{minutes{3}});
  EXPECT_EQ(watch_->last_error()->code, Code::kNotFound);
  EXPECT_EQ(client_.requests.size(), 3U);
}

TEST_F(MachineWatchTest, MachinesOfTheOlderVersionOnlyAreFound) {
  serve(R"({"version":"v1beta1"},{"version":"v1beta2"})", {"machinesets", "machines"});
  client_.answer(200, list_json("100"));
  step();
  EXPECT_THAT(client_.last().path, HasSubstr("/v1beta1/"));
}

TEST_F(MachineWatchTest, AVersionThatIsNotToldIsNotTakenForNone) {
  serve(R"({"version":"v1beta2"})", {});
  client_.answer(503, "");
  EXPECT_EQ(step() - clock_.now().steady, Duration{seconds{15}});
  EXPECT_EQ(watch_->last_error()->code, Code::kUnavailable);
}

TEST_F(MachineWatchTest, WithoutMachinesItLooksAgainEveryFewMinutes) {
  client_.answer(200, R"({"groups":[{"name":"apps","versions":[{"version":"v1"}]}]})");
  EXPECT_EQ(step() - clock_.now().steady, Duration{minutes{3}});
  EXPECT_EQ(watch_->last_error()->code, Code::kNotFound);
  clock_.advance(minutes{2});
  step();
  EXPECT_EQ(client_.requests.size(), 1U);
  clock_.advance(minutes{1});
  serve(R"({"version":"v1beta2"})");
  client_.answer(200, list_json("100"));
  step();
  EXPECT_FALSE(watch_->last_error());
  ASSERT_EQ(events_.size(), 1U);
}

TEST_F(MachineWatchTest, AVersionThatIsServedNoMoreGivesWayToTheNext) {
  serve(R"({"version":"v1beta1"})");
  client_.answer(404, "404 page not found");
  step();
  EXPECT_TRUE(watch_->last_error());
  clock_.advance(seconds{15});
  serve(R"({"version":"v1beta2"})");
  client_.answer(200, list_json("100"));
  step();
  EXPECT_THAT(client_.last().path, HasSubstr("/v1beta2/"));
}

}  // namespace watch_test
}  // namespace slurmlet::kube
