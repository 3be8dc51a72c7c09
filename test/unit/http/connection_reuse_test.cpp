#include <gtest/gtest.h>

#include <atomic>

#include "http/client_fixture.h"

namespace slurmlet::http {
namespace {

using namespace std::chrono_literals;

// Whose connections live for `lives`, one after the other, the last one for ever.
std::unique_ptr<Client> make_short_lived_client(const TestServer& server,
                                                std::vector<Duration> lives) {
  auto credentials = std::make_shared<const Credentials>(
      Credentials{endpoint_of(server), make_identity(pki().ca.certificate), {}});
  auto client = make_curl_client([credentials] { return credentials; },
                                 [lives = std::move(lives), next = std::size_t{0}]() mutable {
                                   return next < lives.size() ? lives[next++] : Duration{1h};
                                 });
  EXPECT_TRUE(client);
  return std::move(*client);
}

// An open stream at /watch, an answer anywhere else.
void watch_or_ok(Exchange& exchange) {
  if (exchange.request().path == "/watch") {
    exchange.start_chunked(200);
    exchange.wait_for_client_to_close();
  } else {
    exchange.respond(200, "ok");
  }
}

// After a rolling upgrade all would stay with the servers that came back first.
TEST(ConnectionReuse, AConnectionIsReplacedWhenItsLifeIsOver) {
  TestServer server{{pki().server}, watch_or_ok};
  const auto client = make_short_lived_client(server, {0s, 0s, 0s});
  const auto watch = client->open_stream(get("/watch"));
  while (watch->status() == 0) {
    (void)client->wait(steady_now() + 10s, {});
  }
  const int before = server.connections();
  ASSERT_TRUE(client->call(get("/a")));
  ASSERT_TRUE(client->call(get("/b")));
  EXPECT_EQ(server.connections(), before + 2);
  EXPECT_TRUE(server.wait_closed(1)) << "the old one is closed";
  EXPECT_FALSE(watch->ended()) << "a stream stays where it is";
}

// The lease must not suffer: the old connection is there until the fresh one has worked.
TEST(ConnectionReuse, AFreshConnectionThatFailsLeavesTheOldOneInUse) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      if (exchange.request().connection == 2) {
                        exchange.drop();
                      } else {
                        exchange.respond(200, "ok");
                      }
                    }};
  const auto client = make_short_lived_client(server, {0s, 0s});
  ASSERT_TRUE(client->call(get("/a")));
  EXPECT_FALSE(client->call(get("/b")));
  const auto third = client->call(get("/c"));
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(server.requests().back().connection, 1);
}

// Of several servers behind one address the fresh connection may have met one that is ill.
TEST(ConnectionReuse, AFreshConnectionToAServerThatIsIllLeavesTheOldOneInUse) {
  for (const int status : {401, 500, 503}) {
    TestServer server{{pki().server}, [status](Exchange& exchange) {
                        exchange.respond(exchange.request().connection == 2 ? status : 200, "");
                      }};
    const auto client = make_short_lived_client(server, {0s, 0s});
    ASSERT_TRUE(client->call(get("/a")));
    const auto second = client->call(get("/b"));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->status, status);
    ASSERT_TRUE(client->call(get("/c")));
    EXPECT_EQ(server.requests().back().connection, 1) << status;
  }
}

TEST(ConnectionReuse, AServerThatIsIllIsLeftAfterTheSecondFailureButNotForARefusedRequest) {
  for (const int status : {401, 500, 503, 403, 404, 409, 429}) {
    TestServer server{{pki().server}, [status](Exchange& exchange) {
                        exchange.respond(exchange.request().connection == 1 ? status : 200, "");
                      }};
    const auto client = make_client(endpoint_of(server));
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(client->call(get("/a")));
    }
    const bool is_fault = status == 401 || status >= 500;
    EXPECT_EQ(server.connections(), is_fault ? 2 : 1) << status;
  }
}

TEST(ConnectionReuse, ServesCallsOverOneConnectionBesideOpenStreams) {
  TestServer server{{pki().server}, watch_or_ok};
  const auto client = make_client(endpoint_of(server));
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(client->open_stream(get("/watch")));
    while (streams.back()->status() == 0) {
      ASSERT_FALSE(streams.back()->ended());
      (void)client->wait(steady_now() + 10s, {});
    }
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(client->call(get("/a")));
  }
  EXPECT_EQ(server.connections(), 5);
}

TEST(ConnectionReuse, ReusesAStreamsConnectionAfterItsOrderlyEnd) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      exchange.start_chunked(200);
                      exchange.end_chunks();
                    }};
  const auto client = make_client(endpoint_of(server));
  for (int i = 0; i < 3; ++i) {
    const auto stream = client->open_stream(get("/watch"));
    while (!stream->ended()) {
      (void)client->wait(steady_now() + 10s, {});
    }
    EXPECT_FALSE(stream->error());
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(ConnectionReuse, ReplacesAConnectionTheServerClosedWhileIdle) {
  for (const bool orderly : {true, false}) {
    TestServer server{{pki().server}, [orderly](Exchange& exchange) {
                        exchange.respond(200, "ok");
                        orderly ? exchange.close() : exchange.drop();
                      }};
    const auto client = make_client(endpoint_of(server));
    ASSERT_TRUE(client->call(get("/a")));
    ASSERT_TRUE(server.wait_closed(1));
    const auto response = client->call(get("/b"));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(server.connections(), 2);
  }
}

// The race that a keep-alive client cannot avoid: the server closes as the request arrives.
TEST(ConnectionReuse, RepeatsARequestThatMetAClosingConnection) {
  for (const char* method : {"GET", "PUT", "PATCH"}) {
    for (const bool orderly : {true, false}) {
      TestServer server{
          {pki().server}, [orderly](Exchange& exchange) {
            if (exchange.request().connection > 1 || exchange.request().path == "/first") {
              exchange.respond(200, exchange.request().body);
            } else {
              orderly ? exchange.close() : exchange.drop();
            }
          }};
      const auto client = make_client(endpoint_of(server));
      ASSERT_TRUE(client->call(get("/first")));
      Request request = get("/second");
      request.method = method;
      request.body = request.method == "GET" ? "" : "body";
      const auto response = client->call(request);
      ASSERT_TRUE(response) << method << ": " << response.error().message;
      EXPECT_EQ(response->body, request.body);
      EXPECT_EQ(server.requests().size(), 3U);
      EXPECT_EQ(server.connections(), 2);
    }
  }
}

TEST(ConnectionReuse, DoesNotRepeatOnAFreshConnection) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.close(); }};
  const auto response = make_client(endpoint_of(server))->call(get("/a"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_EQ(server.connections(), 1);
}

TEST(ConnectionReuse, ClosesIdleConnectionsOnRequest) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, "ok"); }};
  const auto client = make_client(endpoint_of(server));
  ASSERT_TRUE(client->call(get("/a")));
  client->close_idle_connections();
  EXPECT_TRUE(server.wait_closed(1));
  ASSERT_TRUE(client->call(get("/a")));
  EXPECT_EQ(server.connections(), 2);
}

TEST(ConnectionReuse, LeavesStreamsOpenWhenClosingIdleConnections) {
  Event go;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      exchange.start_chunked(200);
                      exchange.chunk("a");
                      go.wait();
                      exchange.chunk("b");
                      exchange.end_chunks();
                    }};
  const auto client = make_client(endpoint_of(server));
  auto stream = client->open_stream(get("/watch"));
  std::string got;
  while (got != "ab") {
    ASSERT_FALSE(stream->ended());
    (void)client->wait(steady_now() + 10s, {});
    got += stream->take();
    if (got == "a") {
      client->close_idle_connections();
      go.set();
    }
  }
  while (!stream->ended()) {
    (void)client->wait(steady_now() + 10s, {});
  }
  EXPECT_FALSE(stream->error());
  stream.reset();
  EXPECT_TRUE(server.wait_closed(1));  // the old pool went with its last user
}

// A firewall or load balancer may forget connections without closing them: a call over one gets no
// answer, and the next one must not use another that was idle as long.
TEST(ConnectionReuse, AfterACallWithoutAnAnswerTheNextTakesANewConnection) {
  std::atomic<int> forgotten = 0;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      if (exchange.request().connection <= forgotten) {
                        exchange.wait_for_client_to_close();
                      } else {
                        exchange.respond(200, "ok");
                      }
                    }};
  const auto client = make_short_lived_client(server, {});
  {
    // Two connections that are idle then.
    const auto stream = client->open_stream(get("/b"));
    ASSERT_TRUE(client->call(get("/a")));
    while (!stream->ended()) {
      (void)client->wait(steady_now() + 10s, {});
    }
  }
  forgotten = server.connections();
  EXPECT_FALSE(client->call(get("/a", 300ms)));
  const auto next = client->call(get("/a", 5s));
  EXPECT_TRUE(next) << next.error().message;
}

}  // namespace
}  // namespace slurmlet::http
