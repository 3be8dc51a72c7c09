// Clients of two servers that share one wait.

#include <gmock/gmock.h>

#include "http/watch_server.h"

namespace slurmlet::http {
namespace sibling_test {

using testing::IsEmpty;
using namespace std::chrono_literals;

std::shared_ptr<const Credentials> credentials(const TestServer& server) {
  return std::make_shared<const Credentials>(
      Credentials{endpoint_of(server), make_identity(pki().ca.certificate), {}});
}

// Two servers, a client of one and its sibling for the other.
struct Pair {
  explicit Pair(TestServer::Handler first_handler = respond_or_watch,
                TestServer::Handler second_handler = respond_or_watch)
      : first_server{{pki().server}, std::move(first_handler)},
        second_server{{pki().server}, std::move(second_handler)},
        first_credentials{credentials(first_server)},
        second_credentials{credentials(second_server)},
        first{std::move(*make_curl_client([this] { return first_credentials; }))},
        second{std::move(*make_sibling(*first, [this] { return second_credentials; }))} {}

  TestServer first_server, second_server;
  std::shared_ptr<const Credentials> first_credentials, second_credentials;
  std::unique_ptr<Client> first, second;
};

TEST(Sibling, ItsStreamMovesAndWakesTheWaitOfTheFirst) {
  const Pair pair;
  const SteadyTime start = steady_now();
  const auto stream = open_watch(*pair.second, *pair.first);
  EXPECT_EQ(stream->status(), 200);
  EXPECT_LT(steady_now() - start, 9s);
}

TEST(Sibling, AStreamOfTheFirstMovesInTheWaitOfTheSibling) {
  const Pair pair;
  EXPECT_EQ(open_watch(*pair.first, *pair.second)->status(), 200);
}

TEST(Sibling, ItsStreamMovesDuringACallOfTheFirst) {
  Event asked;
  const Pair pair{[&](Exchange& exchange) {
                    exchange.respond(200, asked.wait() ? "the other moved" : "it stood still");
                  },
                  [&](Exchange& exchange) {
                    asked.set();
                    exchange.respond(200, "answer");
                  }};
  const auto stream = pair.second->open_stream(get("/node"));
  const auto response = pair.first->call(get("/call", 20s));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "the other moved");
  // What came meanwhile is news for the next wait.
  const SteadyTime start = steady_now();
  std::string got;
  do {
    (void)pair.first->wait(steady_now() + 10s, {});
    got += stream->take();
  } while (!stream->ended());
  EXPECT_EQ(got, "answer");
  EXPECT_LT(steady_now() - start, 9s);
}

TEST(Sibling, ASwapOfItsCredentialsEndsItsOwnStreamsOnly) {
  Pair pair;
  const auto first = open_watch(*pair.first);
  const auto second = open_watch(*pair.second, *pair.first);
  pair.second_credentials = credentials(pair.second_server);
  (void)pair.second->wait(steady_now() + 10s, {});
  EXPECT_TRUE(second->ended());
  EXPECT_FALSE(first->ended());
  pair.first_credentials = credentials(pair.first_server);
  const auto third = open_watch(*pair.second);
  (void)pair.first->wait(steady_now() + 10s, {});
  EXPECT_TRUE(first->ended());
  EXPECT_FALSE(third->ended());
}

TEST(Sibling, ClosesItsOwnIdleConnectionsOnly) {
  const Pair pair;
  ASSERT_TRUE(pair.first->call(get("/a")));
  ASSERT_TRUE(pair.second->call(get("/a")));
  pair.second->close_idle_connections();
  ASSERT_TRUE(pair.first->call(get("/a")));
  ASSERT_TRUE(pair.second->call(get("/a")));
  EXPECT_EQ(pair.first_server.connections(), 1);
  EXPECT_EQ(pair.second_server.connections(), 2);
}

TEST(Sibling, KeepsTheConnectionsOfBothWhileStreamsComeAndGo) {
  const Pair pair;
  const auto watch = open_watch(*pair.first);
  ASSERT_TRUE(pair.first->call(get("/a")));
  for (int i = 0; i < 3; ++i) {
    auto stream = pair.second->open_stream(get("/node"));
    while (!stream->ended()) {
      (void)pair.first->wait(steady_now() + 10s, {});
      (void)stream->take();
    }
    stream.reset();
    ASSERT_TRUE(pair.first->call(get("/a")));
  }
  EXPECT_FALSE(watch->ended());
  EXPECT_EQ(pair.first_server.connections(), 2);
  EXPECT_EQ(pair.second_server.connections(), 1);
}

TEST(Sibling, IsInterruptedByItself) {
  const Pair pair;
  pair.second->interrupt();
  EXPECT_EQ(pair.second->call(get("/a")).error().code, Code::kCancelled);
  EXPECT_TRUE(pair.first->call(get("/a")));
  const SteadyTime until = steady_now() + 50ms;
  EXPECT_THAT(pair.first->wait(until, {}), IsEmpty());
  EXPECT_GE(steady_now(), until);
}

TEST(Sibling, TellsTheAddressOfItsOwnConnections) {
  const Pair pair;
  ASSERT_TRUE(pair.second->call(get("/a")));
  EXPECT_EQ(pair.second->local_address(), "127.0.0.1");
  EXPECT_EQ(pair.first->local_address(), "");
}

TEST(Sibling, GoesBeforeTheFirstWithAStreamUnderWay) {
  Pair pair;
  const auto watch = open_watch(*pair.first);
  auto stream = open_watch(*pair.second, *pair.first);
  stream.reset();
  pair.second.reset();
  EXPECT_TRUE(pair.second_server.wait_closed(1));
  EXPECT_TRUE(pair.first->call(get("/a")));
  EXPECT_FALSE(watch->ended());
}

}  // namespace sibling_test
}  // namespace slurmlet::http
