// Malicious clients against the real listener. The table has an input for each published
// vulnerability of cpp-httplib that a client can reach, whatever version is installed, and for
// request smuggling behind a head that is well-formed; malformed ones: request_head_test.cpp. What
// all of them together cost the daemon: test/system/test_endpoint_hostile.py.
//
// The vulnerabilities, each with the first fixed version, by what protects against them:
// - our reader, bodies: CVE-2025-46728 0.20.1 (no end), CVE-2025-53629 0.23.0 (any chunk size),
//   CVE-2026-22776 0.30.1 and CVE-2026-28435 0.35.0 (compressed, the latter piece by piece),
//   CVE-2026-29076 0.37.0 (filename* of multipart overflows the stack), 0.37.2 (two lengths),
//   CVE-2026-34441 0.40.0 (the body of a GET is the next request), CVE-2026-45352 0.43.4 (chunk
//   sizes), 0.51.0 ("gzip, chunked"; many small headers of multipart parts)
// - our reader, heads: CVE-2025-52887 0.22.0 (many headers), CVE-2025-53628 0.20.1 (long lines)
// - no header is passed on: CVE-2025-66570 0.27.0 (REMOTE_ADDR and the like), CVE-2025-66577 0.27.0
//   (X-Forwarded-For, X-Real-IP), CVE-2026-45372 0.44.0 (%0D%0A), CVE-2026-46527 0.44.0
//   (X-Forwarded-For without an address), 0.11 (Range, by a recursive regular expression)
// - the client is libcurl: CVE-2023-26130 0.12.4 and CVE-2026-21428 0.30.0 (CR LF in headers),
//   CVE-2026-31870 0.37.1 (Content-Length), CVE-2026-32627 0.37.2, CVE-2026-33745 0.39.0 and 0.51.0
//   (redirects: no certificate checks, credentials, cookies), 0.47.0 (custom CA store),
//   GHSA-w7p7-f35j-mw7q 0.50.1 (WebSocket)
// - constant response headers, no trailers: CVE-2020-11709 0.5.9, CVE-2025-0825 0.18.4, 0.50.0
// - a noexcept handler: CVE-2026-28434 0.35.0 (EXCEPTION_WHAT); no routes: 0.53.1 (long paths)
// - details not public: CVE-2026-54919; nothing of a client is passed on

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "podapi/allocated_bytes.h"
#include "podapi/raw_literal.h"
#include "podapi/server_rig.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Attack {
  const char* name;
  int status;  // of the answer
  std::string bytes;
};

std::string repeat(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

std::vector<Attack> attacks() {
  const std::string get = "GET /healthz HTTP/1.1\r\nHost: n1\r\n";
  const std::string post = "POST /run/a/b/c HTTP/1.1\r\nHost: n1\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string smuggled = "GET /secret HTTP/1.1\r\nHost: n1\r\n\r\n";
  return {
      {"CVE-2025-46728: chunks without an end", 501, chunked + repeat("5\r\nhello\r\n", 2000)},
      {"CVE-2025-53629: a chunk of any size", 501, chunked + "7fffffffffffffff\r\n" + smuggled},
      {"CVE-2026-45352: a negative chunk size", 501, chunked + "-2\r\n" + smuggled},
      {"0.43.4: an empty chunk size", 501, chunked + "\r\n" + smuggled},
      {"0.43.4: a chunk size with a sign", 501, chunked + "+5\r\nhello\r\n0\r\n\r\n"},
      {"0.43.4: a chunk size in C's notation", 501, chunked + "0x5\r\nhello\r\n0\r\n\r\n"},
      {"0.43.4: a chunk size with more behind it", 501, chunked + "5 zz\r\nhello\r\n0\r\n\r\n"},
      {"CVE-2025-52887: thousands of headers", 431, get + repeat("A: b\r\n", 5000)},
      {"CVE-2025-53628: a long header", 431, get + "A: " + std::string(60'000, 'b')},
      {"CVE-2025-53628: a long header name", 431, get + std::string(60'000, 'b')},
      {"CVE-2025-53628: a long request line", 414, "GET /" + std::string(60'000, 'b')},
      {"CVE-2025-53628: an endless method", 501, std::string(60'000, 'G')},
      {"CVE-2026-22776: a compressed body", 413,
       post + "Content-Encoding: gzip\r\nContent-Length: 23\r\n\r\n" +
           raw("\x1f\x8b\x08\0\0\0\0\0\0\x03\xed\xc1\x01\x0d\0\0\0\xc2\xa0\xf7\x4f")},
      {"CVE-2026-28435: a compressed body in chunks", 501,
       post + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" +
           raw("3\r\n\x1f\x8b\x08\r\n")},
      {"CVE-2026-29076: a file name for a regular expression", 413,
       post +
           "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000\r\n\r\n"
           "--b\r\nContent-Disposition: form-data; name=\"f\"; filename*=UTF-8''" +
           std::string(9000, 'a')},
      {"CVE-2026-34441: a GET with a body that is a request", 413,
       get + "Content-Length: 37\r\n\r\n" + smuggled},
      {"0.37.2: two lengths", 400,
       post + "Content-Length: 0\r\nContent-Length: 37\r\n\r\n" + smuggled},
      {"smuggling: length and chunked", 400,
       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled},
      {"smuggling: chunked and length", 400,
       post + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" + smuggled},
      {"smuggling: a coding that is not quite chunked", 501,
       post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled},
      {"0.51: chunked as the last of two codings", 501,
       post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled},
  };
}

// Plain and over TLS.
class Hostile : public ::testing::TestWithParam<bool> {
 protected:
  static ServerOptions options(ServerOptions given = {}) {
    // Disables the limit of handshakes, since the clock stands still.
    given.handshakes = {1, 1e6};
    return GetParam() ? Rig::with_tls(std::move(given)) : given;
  }
  static std::unique_ptr<TestClient> connect(const Rig& rig) {
    return GetParam() ? std::make_unique<TlsTestClient>(rig.server.port())
                      : std::make_unique<TestClient>(rig.server.port());
  }
};
INSTANTIATE_TEST_SUITE_P(, Hostile, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "Tls" : "Plain"; });

TEST_P(Hostile, IsRejectedAndClosed) {
  for (const Attack& attack : attacks()) {
    Rig rig{options()};
    const auto client = connect(rig);
    client->send(attack.bytes);
    EXPECT_TRUE(rig.until_closed(*client)) << attack.name;
    EXPECT_THAT(client->received, StartsWith("HTTP/1.1 " + std::to_string(attack.status) + " "))
        << attack.name;
    EXPECT_THAT(client->received, Not(HasSubstr("200 OK"))) << attack.name;
    EXPECT_THAT(client->received, HasSubstr("\r\nConnection: close\r\n")) << attack.name;
    EXPECT_THAT(rig.handler.heads, IsEmpty()) << attack.name;
    EXPECT_EQ(rig.server.counters().rejected_heads, 1U) << attack.name;
    client->abort();
    EXPECT_TRUE(rig.until({}, [&] { return rig.server.counters().open == 0; })) << attack.name;
  }
}

// A POST without Content-Length has no body (RFC 9112 section 6.3), so the rest is another,
// malformed request (second input of CVE-2025-46728).
TEST_P(Hostile, ABodyWithoutALengthIsNotRead) {
  Rig rig{options()};
  const auto client = connect(rig);
  client->send("POST /a HTTP/1.1\r\nHost: n1\r\n\r\n" + std::string(50'000, '{'));
  EXPECT_TRUE(rig.until_closed(*client));
  EXPECT_THAT(rig.handler.heads, SizeIs(1));
  EXPECT_EQ(rig.server.counters().rejected_heads, 1U);
  EXPECT_THAT(client->received, HasSubstr("HTTP/1.1 400 "));
}

TEST_P(Hostile, FloodsEndEarly) {
  const std::pair<const char*, std::string> table[] = {
      {"headers", "A: b\r\n"}, {"one header", "bbbbbbbbbb"}, {"CR LF", "\r\n"}};
  for (const auto& [name, piece] : table) {
    Rig rig{options()};
    const auto client = connect(rig);
    client->send("GET / HTTP/1.1\r\nHost: n1\r\nX: y");
    const std::string block = repeat(piece, 4000);
    std::size_t sent = 0;
    const std::size_t before = allocated_bytes();
    std::size_t most = 0;
    EXPECT_TRUE(rig.until({client.get()}, [&] {
      if (client->has_sent()) {
        client->send(block);
        sent += block.size();
      }
      most = std::max(most, allocated_bytes());
      return client->ended || sent > (std::size_t{64} << 20);
    })) << name;
    EXPECT_TRUE(client->ended) << name;
    EXPECT_LT(sent, std::size_t{32} << 20) << name << ": the kernel's buffers, and no more";
    EXPECT_LT(most - before, std::size_t{1} << 20) << name;
  }
}

TEST_P(Hostile, TheRestAfterARejectionIsDiscardedWithinBounds) {
  Rig rig{options()};
  const auto client = connect(rig);
  client->reads = false;
  client->send("nonsense\r\n");
  ASSERT_TRUE(rig.until({client.get()}, [&] { return rig.server.counters().rejected_heads == 1; }));
  const std::string block(16'384, 'x');
  std::size_t sent = 0;
  EXPECT_TRUE(rig.until({client.get()}, [&] {
    if (client->has_sent()) {
      client->send(block);
      sent += block.size();
    }
    return rig.server.counters().open == 0 || sent > (std::size_t{8} << 20);
  }));
  EXPECT_EQ(rig.server.counters().open, 0U) << "and no time has passed";
}

TEST_P(Hostile, ARejectedClientThatStaysIsClosedSoon) {
  Rig rig{options()};
  const auto client = connect(rig);
  client->send("nonsense\r\n");
  ASSERT_TRUE(rig.until_closed(*client));
  EXPECT_EQ(rig.server.counters().open, 1U);
  rig.pass(seconds{2});
  EXPECT_EQ(rig.server.counters().open, 0U);
  EXPECT_EQ(rig.server.counters().timed_out, 0U);
}

TEST_P(Hostile, SlowLorisEndsAtTheDeadline) {
  Rig rig{options()};
  const auto client = connect(rig);
  const std::string slow = "GET /healthz HTTP/1.1\r\nHost: n1\r\nX-A: ";
  std::size_t at = 0;
  client->send(slow.substr(at++, 1));
  ASSERT_TRUE(rig.until({client.get()}, [&] { return client->has_sent(); }));
  for (int second = 0; second < 9; ++second) {
    rig.pass(seconds{1});
    client->send(slow.substr(at++, 1));
    ASSERT_TRUE(rig.until({client.get()}, [&] { return client->has_sent(); }));
    ASSERT_EQ(rig.server.counters().open, 1U) << second;
  }
  rig.pass(seconds{1});
  EXPECT_EQ(rig.server.counters().open, 0U);
  EXPECT_EQ(rig.server.counters().timed_out, 1U);
  EXPECT_THAT(rig.handler.heads, IsEmpty());
}

TEST_P(Hostile, ASlowSecondRequestHasTheSameDeadline) {
  Rig rig{options()};
  const auto client = connect(rig);
  client->send(kGet);
  ASSERT_TRUE(rig.until({client.get()}, [&] { return !client->received.empty(); }));
  rig.pass(seconds{60});
  client->send("G");
  const auto deadline = rig.clock.now().steady + seconds{10};
  ASSERT_TRUE(rig.until({client.get()}, [&] { return rig.next == deadline; }));
  rig.pass(seconds{9});
  client->send("ET ");
  ASSERT_TRUE(rig.until({client.get()}, [&] { return client->has_sent(); }));
  rig.pass(seconds{1});
  EXPECT_EQ(rig.server.counters().open, 0U);
}

TEST_P(Hostile, PipelinedRequestsAreServedOneByOneWithoutReadingAhead) {
  Rig rig{options()};
  rig.handler.later = true;
  const auto client = connect(rig);
  client->send(kGet);
  ASSERT_TRUE(rig.until({client.get()}, [&] { return rig.handler.ids.size() == 1; }));
  const std::size_t before = allocated_bytes();
  client->send(repeat(kGet, 40'000));
  for (int i = 0; i < 500; ++i) {
    client->turn();
    rig.step();
  }
  EXPECT_THAT(rig.handler.ids, SizeIs(1));
  EXPECT_LT(allocated_bytes() - before, std::size_t{3} << 20) << "the client's own, mostly";
  rig.handler.later = false;
  rig.handler.ready = {{rig.handler.ids[0], rig.handler.response}};
  EXPECT_TRUE(rig.until_closed(*client));
  EXPECT_THAT(rig.handler.ids, SizeIs(ServerOptions{}.max_requests));
}

TEST_P(Hostile, ThousandsOfHalfOpenConnectionsAreBounded) {
  constexpr int kConnections = 10'000;
  Rig rig{options()};
  const auto limit = ServerOptions{}.max_connections;
  std::deque<std::unique_ptr<TestClient>> clients;
  std::size_t warm = 0;
  std::size_t most = 0;
  {
    const auto client = connect(rig);  // makes its address known
    client->send(kGet);
    ASSERT_TRUE(rig.until({client.get()}, [&] { return !client->received.empty(); }));
  }
  for (int i = 0; i < kConnections; ++i) {
    // 16 addresses; no client closes its connection.
    clients.push_back(std::make_unique<TestClient>(
        rig.server.port(), INADDR_LOOPBACK, INADDR_LOOPBACK + 1 + static_cast<unsigned>(i % 16)));
    if (clients.size() > 2 * limit) {
      clients.pop_front();
    }
    if (i % 4 == 0) {
      clients.back()->send("G");
      clients.back()->turn();
    }
    rig.step();
    ASSERT_LE(rig.server.counters().open, limit);
    if (i == kConnections / 10) {
      warm = allocated_bytes();
    } else if (i > kConnections / 10) {
      most = std::max(most, allocated_bytes());
    }
  }
  EXPECT_EQ(rig.server.counters().accepted, static_cast<std::uint64_t>(kConnections) + 1);
  EXPECT_LT(most, warm + (std::size_t{1} << 20)) << "memory stays flat";
  // The known address is still served.
  const auto client = connect(rig);
  client->send(kGet);
  EXPECT_TRUE(rig.until({client.get()}, [&] { return !client->received.empty(); }));
  clients.clear();
}

// The rejections are larger than the kernel's buffers, and these clients never read.
TEST(Server, UnauthenticatedClientsThatReceiveNoAnswersAreEvicted) {
  ServerOptions options;
  options.max_connections = 8;
  options.max_per_address = 4;
  Rig rig{options};
  rig.handler.response.status = 401;
  rig.handler.response.body = std::string(std::size_t{8} << 20, '4');
  std::vector<std::unique_ptr<TestClient>> silent;
  std::vector<TestClient*> all;
  for (unsigned i = 0; i < options.max_connections; ++i) {
    silent.push_back(std::make_unique<TestClient>(rig.server.port(), INADDR_LOOPBACK,
                                                  INADDR_LOOPBACK + 1 + i % 2));
    silent.back()->reads = false;
    silent.back()->send(kGet);
    all.push_back(silent.back().get());
  }
  ASSERT_TRUE(rig.until(all, [&] { return rig.handler.ids.size() == silent.size(); }));
  ASSERT_EQ(rig.server.counters().open, options.max_connections);

  rig.handler.response = {};
  TestClient known{rig.server.port()};
  known.send(kGet);
  EXPECT_TRUE(rig.until({&known}, [&] { return !known.received.empty() || known.ended; }));
  EXPECT_THAT(known.received, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(rig.server.counters().evicted, 1U);
}

}  // namespace
}  // namespace slurmlet::podapi
