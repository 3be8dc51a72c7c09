#include "podapi/http_answerer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace slurmlet::podapi {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Says back what it was asked.
Response echo(const Request& request) {
  Response response;
  response.body = request.method + " " + request.path;
  response.headers = {{"X-Test", "yes"}};
  return response;
}

std::string ask(const std::string& head) { return HttpAnswerer{&echo}.answer(head); }

TEST(HttpAnswerer, AnswersAndEndsTheConnection) {
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Connection: close\r\n"),
                    HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"),
                    HasSubstr("Content-Length: 12\r\n"), HasSubstr("X-Test: yes\r\n"),
                    EndsWith("\r\n\r\nGET /healthz")));
}

TEST(HttpAnswerer, TakesTheQueryOffThePath) {
  EXPECT_THAT(ask("GET /healthz?verbose=1&x HTTP/1.1\r\n\r\n"), EndsWith("\r\n\r\nGET /healthz"));
}

TEST(HttpAnswerer, HeadHasTheLengthButNoBody) {
  EXPECT_THAT(
      ask("HEAD /healthz HTTP/1.1\r\n\r\n"),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 13\r\n"), EndsWith("\r\n\r\n")));
}

TEST(HttpAnswerer, PassesTheStatusOn) {
  const HttpAnswerer answerer{[](const Request&) {
    Response response;
    response.status = 503;
    response.body = "no";
    return response;
  }};
  EXPECT_THAT(answerer.answer("GET / HTTP/1.1\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("\r\n\r\nno")));
}

TEST(HttpAnswerer, WhatIsNoHttpNeverReachesTheHandler) {
  for (const char* head : {"\r\n\r\n", "\n\n", "GET\r\n\r\n", "GET / HTTP/7.0\r\n\r\n",
                           "BREW /pot HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"}) {
    EXPECT_THAT(ask(head), Not(HasSubstr("X-Test"))) << head;
    EXPECT_THAT(ask(head), Not(HasSubstr("HTTP/1.1 200"))) << head;
  }
}

// With a stack of 256 KiB this would be fatal if the header reached cpp-httplib's parser.
TEST(HttpAnswerer, NoHeaderChangesTheAnswer) {
  std::string ranges = "bytes=0-1";
  for (int i = 0; i < 2000; ++i) {
    ranges += ",0-1";
  }
  const std::string plain = ask("GET /x HTTP/1.1\r\n\r\n");
  for (const std::string& header :
       {"Range: " + ranges, std::string{"Range: bytes=9-2"}, std::string{"Expect: 100-continue"},
        std::string{"Content-Length: 99999999"}, std::string{"Transfer-Encoding: chunked"},
        std::string{"nonsense"}}) {
    EXPECT_EQ(ask("GET /x HTTP/1.1\r\n" + header + "\r\n\r\n"), plain) << header.substr(0, 40);
  }
}

TEST(HttpAnswerer, AHandlerThatThrowsIsAServerError) {
  const HttpAnswerer answerer{
      [](const Request&) -> Response { throw std::runtime_error{"broken"}; }};
  EXPECT_THAT(answerer.answer("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 500"));
}

}  // namespace
}  // namespace slurmlet::podapi
