#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <string>

#include "base/unique_fd.h"

namespace slurmlet {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string logged(log::Level level) {
  log::set_level(level);
  ::testing::internal::CaptureStderr();
  log::debug("one");
  log::info("two");
  log::warning("three");
  log::error("four");
  std::string text = ::testing::internal::GetCapturedStderr();
  log::set_level(log::Level::kInfo);
  return text;
}

TEST(LogTest, TheLevelIsTheLeastThatIsWritten) {
  struct Row {
    log::Level level;
    int lines;
  };
  const Row kRows[] = {{log::Level::kDebug, 4},
                       {log::Level::kInfo, 3},
                       {log::Level::kWarning, 2},
                       {log::Level::kError, 1}};
  for (const Row& row : kRows) {
    const std::string text = logged(row.level);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), row.lines) << text;
    EXPECT_THAT(text, EndsWith("four\n"));
  }
}

TEST(LogTest, BracesAreText) {
  ::testing::internal::CaptureStderr();
  log::info("{} {0} {:x} %s");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("{} {0} {:x} %s"));
}

// A drain reason with a line break must not look like a message of its own.
TEST(LogTest, OneMessageIsOneLine) {
  ::testing::internal::CaptureStderr();
  log::info("drained: \"first\r\n<0>second\"");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("first <0>second"));
}

// stderr as a pipe, or as the stream socket of journald, with a reader that may be asleep.
class LogReaderTest : public ::testing::TestWithParam<const char*> {
 protected:
  LogReaderTest() {
    std::array<int, 2> ends{};
    const bool is_socket = std::string{GetParam()} == "socket";
    EXPECT_EQ(is_socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) : ::pipe(ends.data()),
              0);
    reader_.reset(ends[0]);
    const UniqueFd writer{ends[1]};
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    stderr_.reset(::dup(STDERR_FILENO));
    ::dup2(writer.get(), STDERR_FILENO);
  }
  ~LogReaderTest() override { ::dup2(stderr_.get(), STDERR_FILENO); }

  std::string read() const {
    std::string out;
    std::array<char, 65536> buffer{};
    for (ssize_t n = 0; (n = ::read(reader_.get(), buffer.data(), buffer.size())) > 0;) {
      out.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return out;
  }

  UniqueFd reader_;
  UniqueFd stderr_;
};

TEST_P(LogReaderTest, WhatNobodyReadsIsDroppedAndCounted) {
  constexpr int kLines = 200;
  auto logged = std::async(std::launch::async, [] {
    for (int i = 0; i < kLines; ++i) {
      log::info("line " + std::to_string(i) + " " + std::string(3000, 'x') + " end");
    }
  });
  const bool in_time = logged.wait_for(std::chrono::seconds{60}) == std::future_status::ready;
  const std::string first = read();
  if (!in_time) {
    while (logged.wait_for(std::chrono::milliseconds{1}) != std::future_status::ready) {
      read();
    }
  }
  ASSERT_TRUE(in_time) << "a thread waited for who reads its log";
  log::info("read again");
  const std::string later = read();

  const std::string all = first + later;
  const auto whole = std::count(all.begin(), all.end(), '\n') - 2;
  EXPECT_GT(whole, 10);
  EXPECT_LT(whole, kLines);
  EXPECT_THAT(all, HasSubstr(" " + std::to_string(kLines - whole) + " log messages are missing"))
      << whole;
  EXPECT_THAT(later, HasSubstr("read again\n"));
  EXPECT_THAT(all, Not(ContainsRegex("x[^x ]"))) << "a line within another";
  log::info("once more");
  EXPECT_THAT(read(), Not(HasSubstr("missing")));
}

INSTANTIATE_TEST_SUITE_P(Readers, LogReaderTest, ::testing::Values("pipe", "socket"),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
}  // namespace slurmlet
