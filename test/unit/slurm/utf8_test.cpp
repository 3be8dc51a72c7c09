#include "slurm/answers/utf8.h"

#include <gtest/gtest.h>

namespace slurmlet::slurm {
namespace {

TEST(Utf8, KeepsValidText) {
  for (const char* text : {"", "plain", "ünïcode", "€", "\xF0\x9F\x92\xA5", "a\nb|c\"d"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(Utf8, ReplacesEachBadByte) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(valid_utf8("a\xC3"), "a" + r) << "cut off";
  EXPECT_EQ(valid_utf8("\xC0\xAF"), r + r) << "overlong";
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), r + r + r) << "surrogate";
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), r + r + r + r) << "above U+10FFFF";
  EXPECT_EQ(valid_utf8("\x80z"), r + "z") << "stray continuation";
}

}  // namespace
}  // namespace slurmlet::slurm
