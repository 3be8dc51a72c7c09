#include "podapi/request_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "podapi/raw_literal.h"

namespace slurmlet::podapi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using State = HeadReader::State;

HeadReader read(const std::string& text) {
  HeadReader reader;
  reader.feed(text);
  return reader;
}

int status_of(const std::string& text) {
  const HeadReader reader = read(text);
  return reader.state() == State::kRejected   ? reader.rejection_status()
         : reader.state() == State::kComplete ? 200
                                              : 0;
}

TEST(HeadReader, TakesARequestApart) {
  const HeadReader reader = read(
      "GET /stats/summary?only_cpu=true&x=%2F HTTP/1.1\r\nHost: n1:10250\r\n"
      "Authorization: Bearer a.b.c\r\nAccept:*/* \t\r\nX-Empty:\r\n\r\n");
  ASSERT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.head().method, "GET");
  EXPECT_EQ(reader.head().path, "/stats/summary");
  EXPECT_EQ(reader.head().query, "only_cpu=true&x=%2F");
  EXPECT_TRUE(reader.head().keep_alive);
  EXPECT_THAT(reader.head().headers,
              ElementsAre(Pair("host", "n1:10250"), Pair("authorization", "Bearer a.b.c"),
                          Pair("accept", "*/*"), Pair("x-empty", "")));
}

// As sent by kubectl through the API server.
TEST(HeadReader, TakesUpgradeRequests) {
  for (const char* request :
       {"POST /exec/ns/pod/c?command=sh&input=1&tty=1 HTTP/1.1\r\nHost: n1:10250\r\n"
        "User-Agent: kubectl/v1.34.0\r\nContent-Length: 0\r\nConnection: Upgrade\r\n"
        "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v5.channel.k8s.io\r\n"
        "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n",
        "POST /portForward/ns/pod HTTP/1.1\r\nHost: n1:10250\r\nConnection: Upgrade\r\n"
        "Upgrade: SPDY/3.1\r\n\r\n",
        "GET /attach/ns/pod/c?stdout=1 HTTP/1.1\r\nHost: n1:10250\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"}) {
    EXPECT_EQ(status_of(request), 200) << request;
  }
}

TEST(HeadReader, ARepeatedHeaderHasNoValue) {
  const HeadReader reader =
      read("GET / HTTP/1.1\r\nHost: a\r\nAccept: x\r\nAccept: y\r\nX-One: 1\r\n\r\n");
  ASSERT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.head().header("accept"), std::nullopt);
  EXPECT_EQ(reader.head().header("x-one"), "1");
  EXPECT_EQ(reader.head().header("x-two"), std::nullopt);
}

struct Rejected {
  const char* what;
  int status;
  std::string text;
};

std::vector<Rejected> rejected_heads() {
  const std::string host = "Host: a\r\n";
  const auto with = [&](const std::string& headers) {
    return "GET / HTTP/1.1\r\n" + host + headers + "\r\n";
  };
  const auto line = [&](const std::string& request_line) {
    return request_line + "\r\n" + host + "\r\n";
  };
  std::string many;
  for (int i = 0; i < 64; ++i) {
    many += "X: y\r\n";
  }
  return {
      {"an empty line first", 400, "\r\n" + line("GET / HTTP/1.1")},
      {"a TLS hello", 400, raw("\x16\x03\x01\x02\x00\x01\x00")},
      {"HTTP/0.9", 400, "GET /\r\n"},
      {"HTTP/2's preface", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"HTTP/1.2", 505, line("GET / HTTP/1.2")},
      {"HTTP/3.0", 505, line("GET / HTTP/3.0")},
      {"a version in lower case", 400, line("GET / http/1.1")},
      {"a version of three digits", 400, line("GET / HTTP/1.10")},
      {"a version without digits", 400, line("GET / HTTP/1.x")},
      {"two spaces", 400, line("GET  / HTTP/1.1")},
      {"a space at the end", 400, line("GET / HTTP/1.1 ")},
      {"a tab for a space", 400, line("GET\t/ HTTP/1.1")},
      {"a space first", 400, line(" GET / HTTP/1.1")},
      {"no target", 400, line("GET HTTP/1.1")},
      {"a method in lower case", 501, line("get / HTTP/1.1")},
      {"CONNECT", 501, line("CONNECT n1:10250 HTTP/1.1")},
      {"TRACE", 501, line("TRACE / HTTP/1.1")},
      {"an endless method", 501, std::string(20, 'A')},
      {"a target in absolute form", 400, line("GET http://n1/ HTTP/1.1")},
      {"the asterisk form", 400, line("OPTIONS * HTTP/1.1")},
      {"a relative target", 400, line("GET pods HTTP/1.1")},
      {"a fragment", 400, line("GET /a#b HTTP/1.1")},
      {"a space in the target", 400, line("GET /a b HTTP/1.1")},
      {"a backslash in the target", 400, line("GET /..\\a HTTP/1.1")},
      {"percent without digits", 400, line("GET /%zz HTTP/1.1")},
      {"percent at the end", 400, line("GET /a%2 HTTP/1.1")},
      {"a target that is not ASCII", 400, line("GET /\xc3\xa4 HTTP/1.1")},
      {"a long target", 414, "GET /" + std::string(4096, 'x')},
      {"NUL in the request line", 400, raw("GET /\0 HTTP/1.1\r\n")},
      {"NUL in a header", 400, with(raw("X: a\0b\r\n"))},
      {"DEL in a header", 400, with("X: a\x7f\r\n")},
      {"a header that is not ASCII", 400, with("X: \xff\r\n")},
      {"bare CR", 400, with("X: a\rY: b\r\n")},
      {"bare LF after the request line", 400, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
      {"bare LF after a header", 400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
      {"bare LF for the end", 400, "GET / HTTP/1.1\r\nHost: a\r\n\n"},
      {"a folded line", 400, with("X: a\r\n b\r\n")},
      {"a folded line with a tab", 400, with("X: a\r\n\tb: c\r\n")},
      {"a folded line first", 400, "GET / HTTP/1.1\r\n X: a\r\n" + host + "\r\n"},
      {"a space before the colon", 400, with("Content-Length : 0\r\n")},
      {"a tab before the colon", 400, with("X\t: 0\r\n")},
      {"a header without a colon", 400, with("nonsense\r\n")},
      {"a header without a name", 400, with(": x\r\n")},
      {"a name with a parenthesis", 400, with("X(y): x\r\n")},
      {"no Host", 400, "GET / HTTP/1.1\r\n\r\n"},
      {"two Hosts", 400, with("Host: a\r\n")},
      {"two Hosts in other letters", 400, with("HOST: b\r\n")},
      {"a Host with a path", 400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {"a Host with a user", 400, "GET / HTTP/1.1\r\nHost: u@b\r\n\r\n"},
      {"two Authorizations", 400, with("Authorization: Bearer a\r\nauthorization: Bearer b\r\n")},
      {"a body", 413, with("Content-Length: 1\r\n")},
      {"a length in many digits", 413, with("Content-Length: 00\r\n")},
      {"a length that overflows", 413, with("Content-Length: 99999999999999999999999\r\n")},
      {"a negative length", 400, with("Content-Length: -1\r\n")},
      {"a signed length", 400, with("Content-Length: +0\r\n")},
      {"a length in hex", 400, with("Content-Length: 0x0\r\n")},
      {"a list of lengths", 400, with("Content-Length: 0, 0\r\n")},
      {"an empty length", 400, with("Content-Length:\r\n")},
      {"two lengths that agree", 400, with("Content-Length: 0\r\nContent-Length: 0\r\n")},
      {"two lengths that differ", 400, with("Content-Length: 0\r\nContent-Length: 5\r\n")},
      {"chunked", 501, with("Transfer-Encoding: chunked\r\n")},
      {"chunked in disguise", 501, with("Transfer-Encoding: \tchunKed, identity\r\n")},
      {"an empty transfer coding", 501, with("Transfer-Encoding:\r\n")},
      {"two transfer codings", 400, with("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n")},
      {"length and chunked", 400, with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")},
      {"chunked in HTTP/1.0", 400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {"too many headers", 431, with(many)},
      {"a long head", 431, with("X: " + std::string(17000, 'x'))},
      {"a long name", 431, with(std::string(17000, 'x'))},
  };
}

TEST(HeadReader, RejectsMalformedHeads) {
  for (const Rejected& row : rejected_heads()) {
    const HeadReader reader = read(row.text);
    EXPECT_EQ(status_of(row.text), row.status) << row.what;
    EXPECT_THAT(reader.rejection(), Not(IsEmpty())) << row.what;
    EXPECT_TRUE(reader.head().headers.empty()) << row.what << ": nothing is left of it";
  }
}

TEST(HeadReader, RejectsLongLinesBeforeTheyEnd) {
  HeadReader reader;
  std::size_t taken = 0;
  const std::string piece(1000, 'x');
  for (int i = 0; i < 100; ++i) {
    taken += reader.feed(i == 0 ? "GET / HTTP/1.1\r\nX: " : piece);
  }
  EXPECT_EQ(reader.rejection_status(), 431);
  EXPECT_EQ(taken, HeadLimits{}.max_bytes + 1);
}

TEST(HeadReader, TheLimitsAreExact) {
  HeadLimits limits;
  limits.max_bytes = 40;
  limits.max_target_bytes = 3;
  limits.max_headers = 2;
  const auto status = [&](const std::string& text) {
    HeadReader reader{limits};
    reader.feed(text);
    return reader.state() == State::kComplete ? 200 : reader.rejection_status();
  };
  EXPECT_EQ(status("GET /ab HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status("GET /abc HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nB:\r\n\r\n"), 200);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nB:\r\nC:\r\n\r\n"), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: abcdefghijklmn\r\n\r\n"), 200);  // 40 bytes
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: abcdefghijklmno\r\n\r\n"), 431);
}

TEST(HeadReader, KeepAliveFollowsVersionAndConnection) {
  const struct {
    const char* version;
    const char* connection;
    bool keep_alive;
  } table[] = {{"1.1", "", true},
               {"1.1", "Connection: close\r\n", false},
               {"1.1", "Connection: Upgrade, CLOSE\r\n", false},
               {"1.1", "Connection: Upgrade\r\nConnection: close\r\n", false},
               {"1.1", "Connection: closed\r\n", true},
               {"1.1", "Connection: ,,\r\n", true},
               {"1.0", "", false},
               {"1.0", "Connection: Keep-Alive\r\n", true},
               {"1.0", "Connection: keep-alive, close\r\n", false}};
  for (const auto& row : table) {
    const HeadReader reader = read(std::string{"GET / HTTP/"} + row.version + "\r\nHost: a\r\n" +
                                   row.connection + "\r\n");
    ASSERT_EQ(reader.state(), State::kComplete) << row.version << row.connection;
    EXPECT_EQ(reader.head().keep_alive, row.keep_alive) << row.version << row.connection;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200) << "HTTP/1.0 needs no Host";
}

TEST(HeadReader, NeverReadsBeyondTheHead) {
  const std::string one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  HeadReader reader;
  EXPECT_EQ(reader.feed(one + "GET /next"), one.size());
  EXPECT_EQ(reader.feed("more"), 0U);
  EXPECT_EQ(reader.head().path, "/");
  reader.reset();
  EXPECT_FALSE(reader.has_begun());
  EXPECT_EQ(reader.feed("GET /next"), 9U);
  EXPECT_TRUE(reader.has_begun());
}

// A client controls how its bytes are split.
TEST(HeadReader, SplittingChangesNothing) {
  auto rows = rejected_heads();
  rows.push_back({"a good one", 200, "GET /a?b HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n"});
  for (const Rejected& row : rows) {
    const HeadReader whole = read(row.text);
    HeadReader pieces;
    std::size_t taken = 0;
    for (const char c : row.text) {
      taken += pieces.feed({&c, 1});
    }
    HeadReader again;
    EXPECT_EQ(taken, again.feed(row.text)) << row.what;
    EXPECT_EQ(pieces.state(), whole.state()) << row.what;
    EXPECT_EQ(pieces.rejection_status(), whole.rejection_status()) << row.what;
    EXPECT_EQ(pieces.head().headers, whole.head().headers) << row.what;
  }
}

}  // namespace
}  // namespace slurmlet::podapi
