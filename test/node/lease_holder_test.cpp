#include "node/lease_holder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::node {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Verdict = HolderRuling::Verdict;

const WallTime kWall{seconds{1795183200}};  // 2026-11-20T14:00:00Z
const SteadyTime kStart{hours{1}};
constexpr const char* kJustNow = "2026-11-20T13:59:55.000000Z";
constexpr const char* kLater = "2026-11-20T14:00:05.000000Z";

Now after(Duration time) {
  return {kStart + time, kWall + std::chrono::duration_cast<WallTime::duration>(time)};
}

TEST(ForeignHolderTest, Table) {
  struct Row {
    const char* identity;
    const char* ours;
    bool foreign;
  };
  const Row kRows[] = {
      {"", "n1/a", false},         {"n1", "n1/a", false},     {"n1", "n1", false},
      {"n1/a", "n1/a", false},     {"n1/AB", "n1/ab", false}, {"n1/b", "n1/a", true},
      {"n2/a", "n1/a", true},      {"n1/b", "n1", true},      {"n1/", "n1/a", false},
      {"somebody", "n1/a", false},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(is_foreign_holder(row.identity, row.ours), row.foreign)
        << row.identity << " seen by " << row.ours;
  }
}

TEST(JudgeHolderTest, FirstSight) {
  struct Row {
    const char* what;
    LeaseHolder held;
    Verdict verdict;
    Duration again = {};
  };
  const Row kRows[] = {
      {"nobody", {"", "", 0}, Verdict::kFree},
      {"ours", {"n1/a", kJustNow, 40}, Verdict::kFree},
      {"the kubelet", {"n1", kJustNow, 40}, Verdict::kFree},
      {"another, fresh", {"n1/b", kJustNow, 40}, Verdict::kWait, seconds{50}},
      {"another, fresh, other duration", {"n1/b", kJustNow, 8}, Verdict::kWait, seconds{10}},
      {"another, no duration", {"n1/b", kJustNow, 0}, Verdict::kWait, seconds{50}},
      {"another, 680 s", {"n1/b", "2026-11-20T13:48:40.000000Z", 40}, Verdict::kWait, seconds{50}},
      {"another, over 680 s", {"n1/b", "2026-11-20T13:48:39.999999Z", 40}, Verdict::kFree},
      {"another, in the future", {"n1/b", "2026-11-20T18:00:00Z", 40}, Verdict::kWait, seconds{50}},
      {"another, no time", {"n1/b", "", 40}, Verdict::kWait, seconds{50}},
  };
  for (const Row& row : kRows) {
    const HolderRuling ruling = judge_holder(row.held, "n1/a", std::nullopt, after({}));
    EXPECT_EQ(ruling.verdict, row.verdict) << row.what;
    EXPECT_EQ(ruling.sighting.has_value(), row.verdict != Verdict::kFree) << row.what;
    if (row.verdict != Verdict::kFree) {
      EXPECT_EQ(ruling.again, kStart + row.again) << row.what;
    }
  }
}

class SecondLookTest : public ::testing::Test {
 protected:
  HolderRuling look(Duration time, const LeaseHolder& held) {
    const HolderRuling ruling = judge_holder(held, "n1/a", seen_, after(time));
    seen_ = ruling.sighting;
    return ruling;
  }

  std::optional<HolderSighting> seen_;
  const LeaseHolder first_{"n1/b", kJustNow, 40};
  const LeaseHolder renewed_{"n1/b", kLater, 40};
};

TEST_F(SecondLookTest, ASilentHolderIsDead) {
  look({}, first_);
  const HolderRuling early = look(seconds{50} - milliseconds{1}, first_);
  EXPECT_EQ(early.verdict, Verdict::kWait);
  EXPECT_EQ(early.again, kStart + seconds{50});
  EXPECT_EQ(look(seconds{50}, first_).verdict, Verdict::kFree);
}

TEST_F(SecondLookTest, ARenewingHolderIsAliveUntilItIsSilent) {
  look({}, first_);
  const HolderRuling alive = look(seconds{50}, renewed_);
  EXPECT_EQ(alive.verdict, Verdict::kAlive);
  EXPECT_EQ(alive.again, kStart + seconds{100});
  EXPECT_EQ(look(seconds{99}, renewed_).verdict, Verdict::kAlive);
  EXPECT_EQ(look(seconds{100}, renewed_).verdict, Verdict::kFree);
}

// A holder whose clock is hours behind ours looks dead by the wall clock alone.
TEST_F(SecondLookTest, AHolderWithAClockBehindIsAliveOnceItWasSeenToRenew) {
  LeaseHolder behind{"n1/b", kJustNow, 40};
  look({}, behind);
  behind.renew_time = "2026-11-20T10:00:00Z";
  EXPECT_EQ(look(seconds{50}, behind).verdict, Verdict::kAlive);
  EXPECT_EQ(look(seconds{60}, behind).verdict, Verdict::kAlive);
  behind.renew_time = "2026-11-20T10:00:10Z";
  EXPECT_EQ(look(seconds{70}, behind).verdict, Verdict::kAlive);
}

TEST_F(SecondLookTest, AThirdHolderIsLookedAtAnew) {
  look({}, first_);
  const HolderRuling third = look(seconds{50}, {"n1/c", kLater, 40});
  EXPECT_EQ(third.verdict, Verdict::kWait);
  EXPECT_EQ(third.again, kStart + seconds{100});
}

TEST_F(SecondLookTest, AHolderThatLetGoIsForgotten) {
  look({}, first_);
  EXPECT_EQ(look(seconds{10}, {"", "", 40}).verdict, Verdict::kFree);
  EXPECT_FALSE(seen_);
}

TEST(HeldByAnotherTest, SaysWhoSinceWhenAndWhatToDo) {
  EXPECT_THAT(held_by_another("n1", {"n1/b", kJustNow, 40}),
              AllOf(HasSubstr("Node n1"), HasSubstr("n1/b"), HasSubstr(kJustNow),
                    HasSubstr("--nodename"), HasSubstr("stop slurmlet")));
}

}  // namespace
}  // namespace slurmlet::node
