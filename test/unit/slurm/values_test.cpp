#include "slurm/answers/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace slurmlet::slurm {
namespace {

using testing::ElementsAre;

WallTime at(std::int64_t second) { return WallTime{std::chrono::seconds{second}}; }

class Values : public testing::Test {
 protected:
  void SetUp() override { zone("UTC"); }
  void TearDown() override {
    unsetenv("TZ");
    tzset();
  }
  static void zone(const char* name) {
    setenv("TZ", name, 1);
    tzset();
  }
};

// 64 bits of nanoseconds end in the year 2262.
TEST_F(Values, TimesThatTheClockCannotHoldAreNone) {
  for (const char* text : {"4052-11-20T22:32:34", "9999-12-31T23:59:59", "9223372037", "9999999998",
                           "9223372036854775807"}) {
    EXPECT_FALSE(time_value(text)) << text;
  }
}

TEST_F(Values, NothingIsNoValue) {
  for (const char* text : {"", " ", "(null)", "N/A", "n/a", "none", "None", "NONE", "Unknown"}) {
    EXPECT_TRUE(is_nothing(text)) << text;
    EXPECT_EQ(text_value(text), "") << text;
    EXPECT_FALSE(number_value(text)) << text;
    EXPECT_FALSE(load_value(text)) << text;
    EXPECT_FALSE(time_value(text)) << text;
  }
  EXPECT_EQ(text_value(" a b "), "a b");
  EXPECT_EQ(text_value("a\xFF"), "a\xEF\xBF\xBD");
  EXPECT_THAT(list_value("a,,(null), b"), ElementsAre("a", "b"));
}

TEST_F(Values, NumbersAreWholeAndNotNegative) {
  EXPECT_EQ(number_value("4096"), 4096);
  EXPECT_EQ(number_value(" 0 "), 0);
  for (const char* text : {"-1", "4096+", "4G", "1.5", "99999999999999999999", "0x10"}) {
    EXPECT_FALSE(number_value(text)) << text;
  }
  EXPECT_EQ(load_value("0.58"), 0.58);
  EXPECT_EQ(load_value("12"), 12.0);
  for (const char* text : {"-0.5", "nan", "inf", "1e5", "1.2.3", "0.58+", "."}) {
    EXPECT_FALSE(load_value(text)) << text;
  }
}

TEST_F(Values, ALoadOfZeroWithoutAReportIsNoLoad) {
  EXPECT_FALSE(reported_load(0.0, std::nullopt));
  EXPECT_EQ(reported_load(0.0, 100), 0.0);
  EXPECT_EQ(reported_load(0.1, std::nullopt), 0.1);
  EXPECT_FALSE(reported_load(std::nullopt, 100));
}

TEST_F(Values, TimesAreEpochsOrLocalOrWithAnOffset) {
  EXPECT_EQ(time_value("1795218155"), at(1795218155));
  EXPECT_EQ(time_value("2026-11-20T23:43:00"), at(1795218180));
  EXPECT_EQ(time_value("2026-11-20T23:43:00Z"), at(1795218180));
  EXPECT_EQ(time_value("2026-11-20T23:43:00+01:00"), at(1795218180 - 3600));
  zone("CET-1");
  EXPECT_EQ(time_value("2026-11-20T23:43:00"), at(1795218180 - 3600));
  EXPECT_EQ(time_value("2026-11-20T23:43:00Z"), at(1795218180));
  for (const char* text : {"0", "-5", "2026-02-30T00:00:00", "2026-13-01T00:00:00",
                           "2026-11-20T25:00:00", "2026-11-20T23:43:61", "2026-11-20", "10:43",
                           "99999999999999", "2026-11-20T23:43:00x", "Today"}) {
    EXPECT_FALSE(time_value(text)) << text;
  }
}

TEST_F(Values, AListHasWholeWordsOnly) {
  for (const char* word : {"cpus", "free_mem", "x"}) {
    EXPECT_TRUE(has_word("cpus free_mem x", word)) << word;
  }
  for (const char* word : {"", " ", "cpu", "pus", "mem", "free", "cpus free_mem", "y"}) {
    EXPECT_FALSE(has_word("cpus free_mem x", word)) << word;
  }
  EXPECT_FALSE(has_word("", ""));
}

TEST_F(Values, ExcerptsAreShortAndOfOneLine) {
  EXPECT_EQ(excerpt("a\nb\tc\x7F"), "a b c");
  EXPECT_EQ(excerpt(std::string(100, 'x')), std::string(77, 'x') + "...");
  EXPECT_EQ(excerpt("1234\xC3\xA4xyz", 8), "1234...") << "no half of a character";
}

}  // namespace
}  // namespace slurmlet::slurm
