#include <curl/curlver.h>
#include <gmock/gmock.h>

#include "http/client_fixture.h"

namespace slurmlet::http {
namespace {

using namespace std::chrono_literals;

// Waits and takes until `done` says so of what has come, or the stream ends, or 10 s have passed.
std::string collect(Client& client, Stream& stream,
                    const std::function<bool(const std::string&)>& done) {
  std::string got;
  const SteadyTime patience = steady_now() + 10s;
  while (!done(got) && steady_now() < patience) {
    (void)client.wait(patience, {});
    got += stream.take();
    if (stream.ended()) {
      break;
    }
  }
  return got;
}

bool never(const std::string& /*got*/) { return false; }

TEST(ClientStream, GivesStatusChunksAndOrderlyEnd) {
  Event go;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      exchange.start_chunked(200);
                      exchange.chunk("one");
                      go.wait();
                      exchange.chunk("two");
                      exchange.end_chunks();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch?watch=1"));
  EXPECT_EQ(stream->status(), 0);
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(collect(*client, *stream, [](const auto& got) { return got == "one"; }), "one");
  EXPECT_EQ(stream->status(), 200);
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(stream->take(), "");
  EXPECT_EQ(client->local_address(), "127.0.0.1");
  go.set();
  EXPECT_EQ(collect(*client, *stream, never), "two");
  EXPECT_TRUE(stream->ended());
  EXPECT_FALSE(stream->error());
}

TEST(ClientStream, GivesTheBodyOfAnErrorResponse) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      exchange.respond(410, "gone", "Retry-After: 3\r\n");
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch"));
  EXPECT_EQ(collect(*client, *stream, never), "gone");
  EXPECT_EQ(stream->status(), 410);
  EXPECT_EQ(stream->retry_after(), Duration{3s});
  EXPECT_FALSE(stream->error());
}

TEST(ClientStream, SaysWhenItBreaks) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      exchange.start_chunked(200);
                      exchange.chunk("part");
                      exchange.drop();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch"));
  EXPECT_EQ(collect(*client, *stream, never), "part");
  ASSERT_TRUE(stream->ended());
  ASSERT_TRUE(stream->error());
  EXPECT_EQ(stream->error()->code, Code::kUnavailable);
}

TEST(ClientStream, TimesItsHeadersOnly) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      if (exchange.request().path == "/headers") {
                        exchange.start_chunked(200);
                      }
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  const SteadyTime start = steady_now();
  const auto silent = client->open_stream(get("/silent", 300ms));
  const auto headers = client->open_stream(get("/headers", 300ms));
  while (!silent->ended() && steady_now() < start + 10s) {
    (void)client->wait(start + 10s, {});
  }
  ASSERT_TRUE(silent->error());
  EXPECT_EQ(silent->error()->code, Code::kTimeout);
  EXPECT_GE(steady_now() - start, 299ms);
  EXPECT_LT(steady_now() - start, 10s);
  (void)client->wait(start + 700ms, {});
  EXPECT_EQ(headers->status(), 200);
  EXPECT_FALSE(headers->ended());
}

TEST(ClientStream, FillsWhileACallRuns) {
  Event call_came;
  Event chunk_sent;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      if (exchange.request().path == "/call") {
                        call_came.set();
                        chunk_sent.wait();
                        exchange.respond(200, "answer");
                        return;
                      }
                      exchange.start_chunked(200);
                      call_came.wait();
                      exchange.chunk("event");
                      chunk_sent.set();
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch"));
  while (stream->status() == 0) {
    ASSERT_FALSE(stream->ended());
    (void)client->wait(steady_now() + 10s, {});
  }
  const auto response = client->call(get("/call"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "answer");
  // What came during the call is news for the next wait, which therefore returns at once.
  (void)client->wait(kNever, {});
  EXPECT_EQ(stream->take(), "event");
}

// Whether `piece` ends a wait where lines that begin with "quiet" are no news. It comes by itself,
// after `before` has been taken.
void expect_news(const std::string& before, const std::string& piece, bool is_news) {
  Event go;
  Event sent;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      if (exchange.request().path == "/after") {
                        sent.wait();
                        exchange.respond(200, "");
                        return;
                      }
                      exchange.start_chunked(200);
                      exchange.chunk(before);
                      go.wait();
                      exchange.chunk(piece);
                      sent.set();
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  Request request = get("/watch");
  request.quiet_line = "quiet";
  const auto stream = client->open_stream(request);
  ASSERT_EQ(collect(*client, *stream, [&](const auto& got) { return got == before; }), before);
  (void)client->wait(steady_now(), {});
  go.set();
  ASSERT_TRUE(client->call(get("/after")));
  const SteadyTime until = steady_now() + (is_news ? Duration{10s} : Duration{200ms});
  (void)client->wait(until, {});
  EXPECT_EQ(steady_now() < until, is_news) << before << piece;
  EXPECT_EQ(stream->take(), piece);
}

TEST(ClientStream, AQuietLineIsNoNewsWhenItComesWholeAndAlone) {
  expect_news("loud\n", "quiet\n", false);
  expect_news("loud\n", "loud\n", true);
  expect_news("loud\n", "quiet", true);
  expect_news("loud\n", "quiet\nloud\n", true);
  expect_news("loud\n", "quiet\nloud", true);
  expect_news("loud and ", "quiet\n", true);
}

TEST(ClientStream, HoldsABoundedBodyUntilItIsTaken) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  constexpr std::size_t kPiece = 64 * 1024;
  constexpr std::size_t kPieces = 64;
  Event past_limit;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      if (exchange.request().path == "/ping") {
                        past_limit.wait();
                        exchange.respond(200, "");
                        return;
                      }
                      exchange.start_chunked(200);
                      for (std::size_t i = 0; i < kPieces; ++i) {
                        exchange.chunk(std::string(kPiece, static_cast<char>('!' + i)));
                        if (i * kPiece > kLimit + kPiece) {
                          past_limit.set();
                        }
                      }
                      exchange.end_chunks();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/flood"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client->call(get("/ping")));
  }
  std::string got = stream->take();
  EXPECT_GE(got.size(), kLimit);
  EXPECT_LT(got.size(), kLimit + kPiece);
  EXPECT_FALSE(stream->ended());
  got += collect(*client, *stream, never);
  EXPECT_TRUE(stream->ended());
  EXPECT_FALSE(stream->error());
  ASSERT_EQ(got.size(), kPieces * kPiece);
  for (std::size_t i = 0; i < kPieces; ++i) {
    ASSERT_EQ(got.find_first_not_of(static_cast<char>('!' + i), i * kPiece),
              i + 1 < kPieces ? (i + 1) * kPiece : std::string::npos);
  }
}

TEST(ClientStream, ClosesItsConnectionWhenDestroyedInTheMiddle) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      if (exchange.request().path == "/call") {
                        exchange.respond(200, "ok");
                        return;
                      }
                      exchange.start_chunked(200);
                      exchange.chunk("event");
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  auto stream = client->open_stream(get("/watch"));
  EXPECT_EQ(collect(*client, *stream, [](const auto& got) { return !got.empty(); }), "event");
  stream.reset();
  EXPECT_TRUE(server.wait_closed(1));
  EXPECT_TRUE(client->call(get("/call")));
  // Neither started nor connected.
  client->open_stream(get("/watch")).reset();
  EXPECT_TRUE(client->call(get("/call")));
}

}  // namespace
}  // namespace slurmlet::http
