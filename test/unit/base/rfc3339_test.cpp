#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace slurmlet {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

WallTime at(std::int64_t unix_seconds, std::int64_t micros = 0) {
  return WallTime{seconds{unix_seconds} + microseconds{micros}};
}

TEST(Rfc3339Test, WritesUtc) {
  struct Row {
    WallTime time;
    const char* text;
    const char* micro;
  };
  const Row kRows[] = {
      {at(0), "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"},
      {at(1795183331), "2026-11-20T14:02:11Z", "2026-11-20T14:02:11.000000Z"},
      {at(1795183331, 123456), "2026-11-20T14:02:11Z", "2026-11-20T14:02:11.123456Z"},
      {at(1795183331, 7), "2026-11-20T14:02:11Z", "2026-11-20T14:02:11.000007Z"},
      {at(1795183331) + nanoseconds{999}, "2026-11-20T14:02:11Z", "2026-11-20T14:02:11.000000Z"},
      {at(1709164800), "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
      // before the epoch: rounded down, not towards zero
      {at(0) - microseconds{1}, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(rfc3339(row.time), row.text);
    EXPECT_EQ(rfc3339_micro(row.time), row.micro);
  }
}

TEST(Rfc3339Test, Reads) {
  struct Row {
    const char* text;
    WallTime time;
  };
  const Row kRows[] = {
      {"2026-11-20T14:02:11Z", at(1795183331)},
      {"2026-11-20t14:02:11z", at(1795183331)},
      {"2026-11-20T14:02:11.5Z", at(1795183331, 500000)},
      {"2026-11-20T14:02:11.123456Z", at(1795183331, 123456)},
      {"2026-11-20T14:02:11.123456789Z", at(1795183331, 123456)},
      {"2026-11-20T14:02:11.000000000000000000000001Z", at(1795183331)},
      {"2026-11-20T15:02:11+01:00", at(1795183331)},
      {"2026-11-20T08:32:11-05:30", at(1795183331)},
      {"2026-11-21T00:02:11.25+10:00", at(1795183331, 250000)},
      {"1969-12-31T23:59:59.999999Z", at(0) - microseconds{1}},
      {"2024-02-29T00:00:00Z", at(1709164800)},
      {"2016-12-31T23:59:60Z", at(1483228800)},  // leap second
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(parse_rfc3339(row.text), row.time) << row.text;
  }
}

TEST(Rfc3339Test, RefusesEverythingElse) {
  for (const char* text : {
           "",
           "now",
           "2026-11-20",
           "2026-11-20 14:02:11Z",
           "2026-11-20T14:02:11",
           "2026-11-20T14:02Z",
           "2026-11-20T14:02:11.Z",
           "2026-11-20T14:02:11Z ",
           " 2026-11-20T14:02:11Z",
           "2026-11-20T14:02:11ZZ",
           "2026-11-20T14:02:11+0100",
           "2026-11-20T14:02:11+1:00",
           "2026-11-20T14:02:11+01:00x",
           "2026-11-20T14:02:11+24:00",
           "2026-11-20T14:02:11+01:60",
           "2026-13-20T14:02:11Z",
           "2026-00-20T14:02:11Z",
           "2026-11-00T14:02:11Z",
           "2026-11-31T14:02:11Z",
           "2026-02-29T14:02:11Z",
           "2026-11-20T24:02:11Z",
           "2026-11-20T14:60:11Z",
           "2026-11-20T14:02:61Z",
           "-026-11-20T14:02:11Z",
           "2026--1-20T14:02:11Z",
           "2026-11-20T-1:02:11Z",
           "20x6-11-20T14:02:11Z",
       }) {
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
  }
}

// Another writer's Lease may hold Go's zero time or a far future one; WallTime cannot.
TEST(Rfc3339Test, RefusesWhatAWallTimeCannotHold) {
  for (const char* text : {"0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "1600-01-01T00:00:00Z",
                           "2300-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"}) {
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
  }
}

TEST(Rfc3339Test, ReadsWhatItWrites) {
  const WallTime time = at(1795183331, 999999);
  EXPECT_EQ(parse_rfc3339(rfc3339_micro(time)), time);
}

}  // namespace
}  // namespace slurmlet
