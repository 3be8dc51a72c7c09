#include "node/lease_holder.h"

#include <gtest/gtest.h>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(LeaseRenewalTest, RenewTimeIsAlwaysNewerThanTheLast) {
  const WallTime last = time_of("2026-11-20T14:00:00Z");
  struct Row {
    WallTime now, wanted;
  };
  const Row kRows[] = {
      {last + seconds{10}, last + seconds{10}},
      {last + microseconds{1}, last + microseconds{1}},
      {last + nanoseconds{1}, last + microseconds{1}},
      {last, last + microseconds{1}},
      {last - hours{3}, last + microseconds{1}},  // somebody set the clock back
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(next_renew_time(row.now, last), row.wanted);
    // also as it is written
    EXPECT_GT(rfc3339_micro(next_renew_time(row.now, last)), rfc3339_micro(last));
  }
  EXPECT_EQ(next_renew_time(last, WallTime{}), last);  // never renewed before
}

TEST(LeaseRenewalTest, RenewsAtAQuarterOfTheDuration) {
  EXPECT_EQ(renew_interval(seconds{40}, {}, [] { return 0.0; }), seconds{10});
  EXPECT_EQ(renew_interval(seconds{40}, {}, [] { return 1.0; }), milliseconds{10400});
  EXPECT_EQ(renew_interval(seconds{120}, {}, [] { return 0.0; }), seconds{30});
}

// {how far apart they began, the soonest next renewal, the latest}: of a Lease of 40 s.
TEST(LeaseRenewalTest, ThoseWhoBeganTogetherRenewApart) {
  const struct {
    Duration spread, soonest, latest;
  } rows[]{{seconds{0}, seconds{1}, seconds{10}},
           {seconds{4}, seconds{4}, seconds{10}},
           {seconds{10}, seconds{10}, seconds{10}},
           {milliseconds{12'500}, milliseconds{12'500}, milliseconds{12'500}},
           {seconds{99}, seconds{15}, seconds{15}}};
  for (const auto& row : rows) {
    EXPECT_EQ(renew_out_of_step(seconds{40}, row.spread, [] { return 1.0; }), row.soonest);
    EXPECT_EQ(renew_out_of_step(seconds{40}, row.spread, [] { return 0.0; }), row.latest);
  }
}

}  // namespace
}  // namespace slurmlet::node
