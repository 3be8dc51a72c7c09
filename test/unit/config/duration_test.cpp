#include "config/duration.h"

#include <gtest/gtest.h>

namespace slurmlet::config {
namespace {

TEST(DurationTest, Reads) {
  struct Row {
    const char* text;
    std::int64_t milliseconds;
  };
  const Row kRows[] = {
      {"0", 0},
      {"0s", 0},
      {"90", 90'000},
      {"1.5", 1500},
      {"500ms", 500},
      {"1m30s", 90'000},
      {"1.5h", 5'400'000},
      {"1h0m0s", 3'600'000},
      {"-1s", -1000},
      {"+2s", 2000},
      {"1000us", 1},
      {"1000\xc2\xb5s", 1},
      {"1000000ns", 1},
      {"0.001s", 1},
      {"24h", 86'400'000},
      {"1s500ms", 1500},
      {".5s", 500},
      {"0.1s", 100},
      {"100000h", 360'000'000'000},
  };
  for (const auto& row : kRows) {
    const auto duration = parse_duration(row.text);
    ASSERT_TRUE(duration) << row.text;
    EXPECT_EQ(duration->count(), row.milliseconds) << row.text;
  }
}

TEST(DurationTest, Refuses) {
  for (const char* text : {"",
                           " ",
                           "s",
                           "1 s",
                           "1m 30s",
                           "1d",
                           "1sec",
                           "1m30",
                           "--1s",
                           "1..5s",
                           "1e3s",
                           "inf",
                           "nan",
                           "1us",
                           "0.0001s",
                           "10000000h",
                           "99999999999999999999999s",
                           "1s-",
                           "0x10s",
                           "."}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(DurationTest, WritesWhatReadsBackTheSame) {
  struct Row {
    std::int64_t milliseconds;
    const char* text;
  };
  const Row kRows[] = {{0, "0s"},
                       {1, "1ms"},
                       {40'000, "40s"},
                       {60'000, "1m"},
                       {90'500, "1m30s500ms"},
                       {3'600'000, "1h"},
                       {86'400'001, "24h1ms"},
                       {-1500, "-1s500ms"}};
  for (const auto& row : kRows) {
    EXPECT_EQ(format_duration(Milliseconds{row.milliseconds}), row.text);
    ASSERT_TRUE(parse_duration(row.text)) << row.text;
    EXPECT_EQ(parse_duration(row.text)->count(), row.milliseconds) << row.text;
  }
}

}  // namespace
}  // namespace slurmlet::config
