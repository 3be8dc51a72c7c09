#include "podapi/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "podapi/server_rig.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(Server, HandsRequestsToTheHandler) {
  Rig rig;
  EXPECT_THAT(rig.exchange(kGetAndClose),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nConnection: close\r\n"),
                    EndsWith("\r\n\r\nok")));
  ASSERT_THAT(rig.handler.heads, SizeIs(1));
  EXPECT_EQ(rig.handler.heads[0].path, "/pods");
  EXPECT_EQ(rig.handler.heads[0].query, "a=b");
  EXPECT_THAT(rig.handler.callers[0].address, StartsWith("127.0.0.1:"));
  EXPECT_FALSE(rig.handler.callers[0].certificate);
  EXPECT_EQ(rig.server.counters().accepted, 1U);
  EXPECT_EQ(rig.server.counters().answers.at(200), 1U);
  EXPECT_TRUE(rig.until({}, [&] { return rig.server.counters().open == 0; }));
}

TEST(Server, SleepsWhileNothingHappens) {
  Rig rig;
  rig.step();
  EXPECT_EQ(rig.next, kNever);
  EXPECT_FALSE(is_readable(rig.server.fd()));
  TestClient client{rig.server.port()};
  EXPECT_TRUE(is_readable(rig.server.fd()));
  rig.step();
  EXPECT_FALSE(is_readable(rig.server.fd()));
  EXPECT_EQ(rig.next, rig.clock.now().steady + seconds{10}) << "the head's deadline";
}

TEST(Server, KeepsTheConnectionForTheNextRequest) {
  Rig rig;
  TestClient client{rig.server.port()};
  for (std::size_t i = 1; i <= 3; ++i) {
    client.send(kGet);
    ASSERT_TRUE(rig.until({&client}, [&] { return count(client.received, "\r\n\r\nok") == i; }));
    rig.clock.advance(seconds{60});
  }
  EXPECT_EQ(rig.server.counters().accepted, 1U);
  EXPECT_FALSE(client.ended);
  rig.pass(seconds{31});
  EXPECT_TRUE(rig.until_closed(client)) << "idle for 90 s";
  EXPECT_EQ(rig.server.counters().timed_out, 0U) << "an idle connection that ends is no fault";
}

TEST(Server, Http10ClosesWithoutKeepAlive) {
  Rig rig;
  EXPECT_THAT(rig.exchange("GET /a HTTP/1.0\r\n\r\n"), EndsWith("\r\n\r\nok"));
  TestClient client{rig.server.port()};
  client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(rig.until({&client}, [&] { return count(client.received, "\r\n\r\nok") == 1; }));
  EXPECT_THAT(client.received, HasSubstr("\r\nConnection: keep-alive\r\n"));
  client.send(kGetAndClose);
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_EQ(count(client.received, "\r\n\r\nok"), 2U);
}

TEST(Server, AnswersLater) {
  Rig rig;
  rig.handler.later = true;
  TestClient client{rig.server.port()};
  client.send(kGetAndClose);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
  rig.handler.poll_again = rig.clock.now().steady + seconds{3};
  rig.step();
  EXPECT_EQ(rig.next, rig.handler.poll_again);
  EXPECT_EQ(client.received, "");
  rig.handler.ready = {{rig.handler.ids[0], rig.handler.response},
                       {rig.handler.ids[0] + 77, rig.handler.response}};  // of no request
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_THAT(client.received, EndsWith("\r\n\r\nok"));
  EXPECT_THAT(rig.handler.forgotten, IsEmpty());
}

TEST(Server, ForgetsAWaitingRequestWhoseClientIsGone) {
  for (const bool politely : {true, false}) {
    Rig rig;
    rig.handler.later = true;
    TestClient client{rig.server.port()};
    client.send(kGet);
    ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
    if (politely) {
      client.half_close();
    } else {
      const linger reset{1, 0};
      ::setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      client.abort();
    }
    ASSERT_TRUE(rig.until({}, [&] { return rig.server.counters().open == 0; }));
    EXPECT_THAT(rig.handler.forgotten, ElementsAre(rig.handler.ids[0]));
    rig.handler.ready = {{rig.handler.ids[0], rig.handler.response}};
    rig.step();
    EXPECT_THAT(rig.server.counters().answers, IsEmpty());
  }
}

TEST(Server, AHalfClosedClientGetsAnImmediateAnswer) {
  Rig rig;
  TestClient client{rig.server.port()};
  client.send(kGet);
  client.turn();
  client.half_close();
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_THAT(client.received, EndsWith("\r\n\r\nok"));
}

TEST(Server, AMissingAnswerIs503) {
  Rig rig;
  rig.handler.later = true;
  TestClient client{rig.server.port()};
  client.send(kGet);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
  rig.pass(seconds{30});
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_THAT(client.received, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(rig.handler.forgotten, ElementsAre(rig.handler.ids[0]));
  EXPECT_EQ(rig.server.counters().timed_out, 1U);
}

TEST(Server, ForgetsWaitingRequestsWhenDestroyed) {
  CountingHandler handler;
  handler.later = true;
  {
    Server server{Rig::prepare({}), handler};
    ASSERT_TRUE(server.start());
    TestClient client{server.port()};
    client.send(kGet);
    client.turn();
    const fakes::FakeClock clock;
    for (int i = 0; i < 1000 && handler.ids.empty(); ++i) {
      pollfd waiting{server.fd(), POLLIN, 0};
      ::poll(&waiting, 1, 1000);
      server.step(clock.now());
    }
    ASSERT_THAT(handler.ids, SizeIs(1));
  }
  EXPECT_EQ(handler.forgotten, handler.ids);
}

TEST(Server, LargeAnswersAreWrittenAsTheClientTakesThem) {
  Rig rig;
  rig.handler.response.body = std::string(std::size_t{8} << 20, 'h') + "end";
  TestClient client{rig.server.port()};
  client.reads = false;
  client.send(kGetAndClose);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
  for (int i = 0; i < 100; ++i) {
    rig.step();
  }
  EXPECT_FALSE(is_readable(rig.server.fd())) << "the buffers are full: the server sleeps";
  client.reads = true;
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_GT(client.received.size(), std::size_t{8} << 20);
  EXPECT_THAT(client.received.substr(client.received.size() - 4), "hend");
}

TEST(Server, AClientThatNeverReadsIsCutOff) {
  Rig rig;
  rig.handler.response.body = std::string(std::size_t{8} << 20, 'h');
  TestClient client{rig.server.port()};
  client.reads = false;
  client.send(kGet);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
  rig.pass(seconds{29});
  EXPECT_EQ(rig.server.counters().open, 1U);
  rig.pass(seconds{1});
  EXPECT_EQ(rig.server.counters().open, 0U);
  EXPECT_EQ(rig.server.counters().timed_out, 1U);
}

TEST(Server, AConnectionEndsAfterItsRequests) {
  ServerOptions options;
  options.max_requests = 2;
  Rig rig{options};
  TestClient busy{rig.server.port()};
  busy.send(kGet + kGet + kGet);
  EXPECT_TRUE(rig.until_closed(busy));
  EXPECT_THAT(rig.handler.ids, SizeIs(2));
  EXPECT_EQ(count(busy.received, "\r\nConnection: close\r\n"), 1U);
}

TEST(Server, TheLastRequestBeforeTheAgeIsAnsweredAndEndsTheConnection) {
  ServerOptions options;
  options.max_age = seconds{20};
  Rig rig{options};
  TestClient client{rig.server.port()};
  client.send(kGet);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 1; }));
  rig.handler.later = true;
  client.send(kGet);
  ASSERT_TRUE(rig.until({&client}, [&] { return rig.handler.ids.size() == 2; }));
  rig.pass(seconds{20});
  rig.handler.ready = {{rig.handler.ids[1], rig.handler.response}};
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_EQ(count(client.received, "\r\n\r\nok"), 2U);
  EXPECT_EQ(count(client.received, "\r\nConnection: close\r\n"), 1U);
}

// Connects from 127.0.0.1 + n, another address.
std::unique_ptr<TestClient> connect_from(Rig& rig, unsigned n) {
  auto client =
      std::make_unique<TestClient>(rig.server.port(), INADDR_LOOPBACK, INADDR_LOOPBACK + n);
  const auto before = rig.server.counters().accepted;
  EXPECT_TRUE(rig.until({client.get()}, [&] { return rig.server.counters().accepted > before; }));
  return client;
}

void request_and_stay(Rig& rig, TestClient& client) {
  client.send(kGet);
  EXPECT_TRUE(rig.until({&client}, [&] { return !client.received.empty(); }));
}

TEST(Server, WhenFullTheLongestIdleIsEvicted) {
  ServerOptions options;
  options.max_connections = 3;
  Rig rig{options};
  const auto anonymous = connect_from(rig, 1);
  const auto later_idle = connect_from(rig, 2);
  const auto first_idle = connect_from(rig, 3);
  request_and_stay(rig, *first_idle);
  rig.clock.advance(seconds{1});
  request_and_stay(rig, *later_idle);
  const auto newcomer = connect_from(rig, 4);
  EXPECT_TRUE(rig.until_closed(*first_idle));
  anonymous->turn();
  later_idle->turn();
  EXPECT_FALSE(anonymous->ended || later_idle->ended);
  request_and_stay(rig, *newcomer);
  EXPECT_EQ(rig.server.counters().evicted, 1U);
  EXPECT_EQ(rig.server.counters().open, 3U);
}

TEST(Server, WhenFullTheOldestUnauthenticatedIsEvictedNotAKnownClient) {
  ServerOptions options;
  options.max_connections = 3;
  Rig rig{options};
  const auto known = connect_from(rig, 1);
  request_and_stay(rig, *known);
  known->send("GET /second HT");  // authorized before, with another request now
  ASSERT_TRUE(rig.until({known.get()}, [&] { return known->has_sent(); }));
  const auto unknown = connect_from(rig, 2);
  const auto other = connect_from(rig, 3);
  const auto newcomer = connect_from(rig, 4);
  EXPECT_TRUE(rig.until_closed(*unknown));
  known->turn();
  other->turn();
  EXPECT_FALSE(known->ended || other->ended);
}

// The health port authorizes every local user.
TEST(Server, OnAPlainPortIncompleteHeadsAreEvicted) {
  ServerOptions options;
  options.max_connections = 3;
  Rig rig{options};
  std::vector<std::unique_ptr<TestClient>> holders;
  for (unsigned i = 1; i <= 3; ++i) {
    holders.push_back(connect_from(rig, i));
    request_and_stay(rig, *holders.back());
    holders.back()->send("G");
    ASSERT_TRUE(rig.until({holders.back().get()}, [&] { return holders.back()->has_sent(); }));
  }
  const auto newcomer = connect_from(rig, 4);
  request_and_stay(rig, *newcomer);
  EXPECT_EQ(rig.server.counters().evicted, 1U);
}

TEST(Server, WhenAllAreServedTheNewOneIsClosed) {
  ServerOptions options;
  options.max_connections = 2;
  Rig rig{options};
  rig.handler.later = true;
  const auto one = connect_from(rig, 1);
  const auto two = connect_from(rig, 2);
  one->send(kGet);
  two->send(kGet);
  ASSERT_TRUE(rig.until({one.get(), two.get()}, [&] { return rig.handler.ids.size() == 2; }));
  const auto three = connect_from(rig, 3);
  EXPECT_TRUE(rig.until_closed(*three));
  EXPECT_EQ(rig.server.counters().turned_away, 1U);
  EXPECT_THAT(rig.handler.forgotten, IsEmpty());
}

TEST(Server, AFloodFromOneAddressEndsItsOwnConnections) {
  ServerOptions options;
  options.max_connections = 8;
  options.max_per_address = 4;
  Rig rig{options};
  const auto other = connect_from(rig, 1);
  std::vector<std::unique_ptr<TestClient>> flood;
  for (int i = 0; i < 20; ++i) {
    flood.push_back(connect_from(rig, 2));
  }
  EXPECT_EQ(rig.server.counters().open, 5U);
  request_and_stay(rig, *other);
  EXPECT_EQ(rig.server.counters().evicted, 16U);
}

// While it lives, accept4(2) fails for want of descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{3, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(Server, WithoutDescriptorsItPausesUntilSomeTimeOrAConnectionIsOver) {
  for (const bool closes : {false, true}) {
    Rig rig;
    TestClient held{rig.server.port()};
    rig.step();
    TestClient waiting{rig.server.port()};
    {
      const NoDescriptors none;
      rig.step();
      EXPECT_FALSE(is_readable(rig.server.fd())) << "the waiting connection must not wake us";
      EXPECT_LE(rig.next, rig.clock.now().steady + seconds{1});
      if (!closes) {
        rig.pass(seconds{1});
        rig.step();
      }
      EXPECT_EQ(rig.server.counters().accepted, 1U);
    }
    if (closes) {
      held.abort();
    } else {
      rig.pass(seconds{1});
    }
    EXPECT_TRUE(rig.until({}, [&] { return rig.server.counters().accepted == 2; })) << closes;
    waiting.send(kGetAndClose);
    EXPECT_TRUE(rig.until_closed(waiting));
    EXPECT_THAT(waiting.received, EndsWith("ok"));
  }
}

}  // namespace
}  // namespace slurmlet::podapi
