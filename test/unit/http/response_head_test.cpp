#include "http/response_head.h"

#include <gtest/gtest.h>

namespace slurmlet::http {
namespace {

ResponseHead parse(const std::vector<std::string>& lines) {
  ResponseHead head;
  for (const auto& line : lines) {
    head.add_line(line);
  }
  return head;
}

TEST(ResponseHead, HasNoStatusBeforeTheBlankLine) {
  auto head = parse({"HTTP/1.1 200 OK\r\n", "A: b\r\n"});
  EXPECT_EQ(head.status(), 0);
  head.add_line("\r\n");
  EXPECT_TRUE(head.complete());
  EXPECT_EQ(head.status(), 200);
}

TEST(ResponseHead, PassesOverInterimResponses) {
  auto head = parse({"HTTP/1.1 100 Continue\r\n", "Retry-After: 3\r\n", "\r\n"});
  EXPECT_FALSE(head.complete());
  head.add_line("HTTP/1.1 404 Not Found\r\n");
  head.add_line("\r\n");
  EXPECT_EQ(head.status(), 404);
  EXPECT_FALSE(head.retry_after());
}

TEST(ResponseHead, IgnoresTrailers) {
  auto head = parse({"HTTP/1.1 200 OK\r\n", "\r\n", "Retry-After: 3\r\n"});
  EXPECT_FALSE(head.retry_after());
}

TEST(ResponseHead, ReadsTheDate) {
  const auto head =
      parse({"HTTP/1.1 200 OK\r\n", "dAtE: Fri, 20 Nov 2026 14:02:11 GMT\r\n", "\r\n"});
  ASSERT_TRUE(head.date());
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*head.date()), 1795183331);
}

struct RetryCase {
  const char* value;
  std::optional<Duration> expected;
};
class RetryAfter : public testing::TestWithParam<RetryCase> {};
INSTANTIATE_TEST_SUITE_P(
    Values, RetryAfter,
    testing::Values(RetryCase{"7", std::chrono::seconds{7}}, RetryCase{"0", Duration{}},
                    RetryCase{"-1", std::nullopt}, RetryCase{"soon", std::nullopt},
                    RetryCase{"", std::nullopt}, RetryCase{"99999999999999999999", std::nullopt},
                    RetryCase{"Fri, 20 Nov 2026 14:02:41 GMT", std::chrono::seconds{30}},
                    RetryCase{"Fri, 20 Nov 2026 14:00:00 GMT", Duration{}}));

TEST_P(RetryAfter, IsSecondsOrADate) {
  const auto head =
      parse({"HTTP/1.1 429 Too Many Requests\r\n", "Date: Fri, 20 Nov 2026 14:02:11 GMT\r\n",
             std::string{"Retry-After: "} + GetParam().value + "\r\n", "\r\n"});
  EXPECT_EQ(head.retry_after(), GetParam().expected);
}

TEST(ResponseHead, SurvivesOddLines) {
  const auto head = parse({"HTTP/1.1\r\n", "no colon\r\n", ": \r\n", "Date: never\r\n", "\r\n"});
  EXPECT_FALSE(head.complete());
  EXPECT_FALSE(head.date());
}

}  // namespace
}  // namespace slurmlet::http
