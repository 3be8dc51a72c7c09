#include "podapi/http_answerer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace slurmlet::podapi {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

RequestHead head_of(const std::string& method) {
  RequestHead head;
  head.method = method;
  head.path = "/healthz";
  return head;
}

Response hello() {
  Response response;
  response.body = "hello";
  response.headers = {{"X-Test", "yes"}};
  return response;
}

TEST(HttpAnswerer, WritesStatusHeadersAndBody) {
  EXPECT_THAT(HttpAnswerer{}.answer(head_of("GET"), hello(), false),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nConnection: close\r\n"),
                    HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"),
                    HasSubstr("\r\nContent-Length: 5\r\n"), HasSubstr("\r\nX-Test: yes\r\n"),
                    EndsWith("\r\n\r\nhello")));
}

// HTTP/1.0 clients require the header.
TEST(HttpAnswerer, SendsKeepAlive) {
  EXPECT_THAT(HttpAnswerer(std::chrono::seconds{7}, 8).answer(head_of("GET"), hello(), true),
              AllOf(HasSubstr("\r\nConnection: keep-alive\r\n"), Not(HasSubstr("close")),
                    HasSubstr("\r\nKeep-Alive: timeout=7, max=8\r\n")));
}

TEST(HttpAnswerer, HeadHasTheLengthButNoBody) {
  EXPECT_THAT(
      HttpAnswerer{}.answer(head_of("HEAD"), hello(), false),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 5\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpAnswerer, PassesEveryStatusOfOursOn) {
  for (const int status :
       {200, 400, 401, 403, 404, 405, 411, 413, 414, 429, 431, 500, 501, 503, 505}) {
    Response response = hello();
    response.status = status;
    EXPECT_THAT(
        HttpAnswerer{}.answer(head_of("GET"), response, false),
        AllOf(StartsWith("HTTP/1.1 " + std::to_string(status) + " "), EndsWith("\r\n\r\nhello")));
  }
}

TEST(HttpAnswerer, AnEmptyAnswerHasALength) {
  EXPECT_THAT(HttpAnswerer{}.answer(head_of("GET"), Response{}, true),
              HasSubstr("\r\nContent-Length: 0\r\n"));
}

TEST(HttpAnswerer, AnswersAreIndependent) {
  HttpAnswerer answerer;
  const std::string first = answerer.answer(head_of("GET"), hello(), true);
  Response other;
  other.status = 404;
  EXPECT_THAT(answerer.answer(head_of("GET"), other, false), Not(HasSubstr("X-Test")));
  EXPECT_EQ(answerer.answer(head_of("GET"), hello(), true), first);
}

// Inputs that cpp-httplib would act on: a Range that overflows the stack of its regular expression,
// headers that shadow its own (CVE-2025-66570, CVE-2025-66577, CVE-2026-46527) or that it decodes
// (CVE-2026-45372), an encoding to decompress, a path to match.
TEST(HttpAnswerer, NothingOfTheClientReachesTheLibrary) {
  std::string ranges = "bytes=0-1";
  for (int i = 0; i < 2000; ++i) {
    ranges += ",0-1";
  }
  HttpAnswerer answerer;
  const std::string plain = answerer.answer(head_of("GET"), hello(), false);
  for (const auto& header : std::initializer_list<std::pair<std::string, std::string>>{
           {"range", ranges},
           {"accept-encoding", "gzip"},
           {"connection", "keep-alive"},
           {"expect", "100-continue"},
           {"remote_addr", "127.0.0.1"},
           {"local_port", "1"},
           {"x-real-ip", "127.9.9.9"},
           {"x-forwarded-for", ""},
           {"x-a", "a%0D%0AX-Admin: y%0d%0a"},
           {"upgrade", "h2c"},
           {"content-length", "9"},
           {"x-forwarded-for", ","}}) {
    RequestHead head = head_of("POST");
    head.path = "/%0d%0aX: y/" + std::string(4000, '/');
    head.headers = {header};
    EXPECT_EQ(answerer.answer(head, hello(), false), plain) << header.first;
  }
}

}  // namespace
}  // namespace slurmlet::podapi
