#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace slurmlet {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace slurmlet
