#include "base/plain_text.h"

#include <gtest/gtest.h>

namespace slurmlet {
namespace {

constexpr const char* kBad = "\xEF\xBF\xBD";  // U+FFFD

TEST(PlainTextTest, OnlyWhatCanBeShownIsLeft) {
  const struct {
    std::string text;
    std::string line;
  } table[] = {
      {"", ""},
      {"bad dimm", "bad dimm"},
      {"  a \r\n\r\n\tb  ", "a b"},
      {"red\x1b[31mtext\x1b]0;title\x07 end", "red [31mtext ]0;title end"},
      {"c1\xC2\x9B"
       "31m\xC2\x85z",
       "c1 31m z"},
      {"rtl\xE2\x80\xAE"
       "gnp\xE2\x80\xAC\xE2\x81\xA6x\xE2\x81\xA9",
       "rtl gnp x"},
      {"marks\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C"
       "z",
       "marks z"},
      {"zero\xE2\x80\x8Bwidth\xEF\xBB\xBF", "zero width"},
      {"line\xE2\x80\xA8paragraph\xE2\x80\xA9", "line paragraph"},
      {"tag\xF3\xA0\x81\xA1s", "tag s"},
      {std::string("nul\0del\x7F", 8), "nul del"},
      {"caf\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x94\xA5",
       "caf\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x94\xA5"},
      {"a\xFFz", std::string("a") + kBad + "z"},
      {"\xC0\xAF", std::string(kBad) + kBad},             // overlong
      {"\xED\xA0\x80", std::string(kBad) + kBad + kBad},  // surrogate
      {"\xF4\x90\x80\x80", std::string(kBad) + kBad + kBad + kBad},
      {"\xE2\x82", std::string(kBad) + kBad},  // cut off
  };
  for (const auto& row : table) {
    EXPECT_EQ(plain_text(row.text), row.line);
    EXPECT_EQ(plain_text(plain_text(row.text)), row.line);
  }
}

TEST(PlainTextTest, ACutIsMarkedAndSplitsNoCharacter) {
  EXPECT_EQ(plain_text("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(plain_text("abcdefghi", 8), "abcde...");
  EXPECT_EQ(plain_text("abcd\xC3\xA9\xC3\xA9", 7), "abcd...");
  EXPECT_EQ(plain_text("abcdef", 2), "..");
  EXPECT_EQ(plain_text("abcdef", 0), "");
  for (std::size_t limit = 0; limit < 40; ++limit) {
    std::string text;
    for (int i = 0; i < 20; ++i) {
      text += "\xF0\x9F\x94\xA5\xE2\x80\xAE\xFF";
    }
    EXPECT_LE(plain_text(text, limit).size(), limit);
  }
  EXPECT_EQ(plain_text(std::string(300'000, 'x')).size(), kMaxPlainBytes);
}

TEST(PlainTextTest, ControlsAreShownToATerminal) {
  EXPECT_EQ(shown_controls("{\n  \"a\": \"caf\xC3\xA9\"\n}\n"), "{\n  \"a\": \"caf\xC3\xA9\"\n}\n");
  EXPECT_EQ(shown_controls("a\x1b[1m\xC2\x9B\xE2\x80\xAE\xF3\xA0\x81\xA1\xFF"),
            std::string("a\\u001b[1m\\u009b\\u202e\\udb40\\udc61") + kBad);
}

TEST(PlainTextTest, AListLosesWholeElements) {
  EXPECT_EQ(plain_list("a,b,c", 10), "a,b,c");
  EXPECT_EQ(plain_list("aa,bb,cc", 7), "aa,bb");
  EXPECT_EQ(plain_list("aa,bb,cc", 5), "aa,bb");
  EXPECT_EQ(plain_list("aaaaaaaa", 5), "");
  EXPECT_EQ(plain_list("a\x1b[1m,b", 20), "a [1m,b");
}

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
}  // namespace slurmlet
