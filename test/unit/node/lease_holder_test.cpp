#include "node/lease_holder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::node {
namespace lease_holder_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Verdict = HolderRuling::Verdict;

const SteadyTime kStart{hours{1}};
constexpr const char* kJustNow = "2026-11-20T13:59:55.000000Z";
constexpr const char* kLater = "2026-11-20T14:00:05.000000Z";

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
      {"another, of long ago", {"n1/b", "2020-01-01T00:00:00Z", 40}, Verdict::kWait, seconds{50}},
      {"another, in the future", {"n1/b", "2026-11-20T18:00:00Z", 40}, Verdict::kWait, seconds{50}},
      {"another, no time", {"n1/b", "", 40}, Verdict::kWait, seconds{50}},
  };
  for (const Row& row : kRows) {
    const HolderRuling ruling = judge_holder(row.held, "n1/a", std::nullopt, kStart);
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
    const HolderRuling ruling = judge_holder(held, "n1/a", seen_, kStart + time);
    seen_ = ruling.sighting;
    return ruling;
  }

  std::optional<HolderSighting> seen_;
  const LeaseHolder first_{"n1/b", kJustNow, 40};
  const LeaseHolder renewed_{"n1/b", kLater, 40};
};

TEST_F(SecondLookTest, ASilentHolderIsDeadAndARenewingOneAliveUntilItIsSilent) {
  look({}, first_);
  const HolderRuling early = look(seconds{50} - milliseconds{1}, first_);
  EXPECT_EQ(early.verdict, Verdict::kWait);
  EXPECT_EQ(early.again, kStart + seconds{50});
  EXPECT_EQ(look(seconds{50}, first_).verdict, Verdict::kFree);
  seen_.reset();
  look({}, first_);
  const HolderRuling alive = look(seconds{50}, renewed_);
  EXPECT_EQ(alive.verdict, Verdict::kAlive);
  EXPECT_EQ(alive.again, kStart + seconds{100});
  EXPECT_EQ(look(seconds{99}, renewed_).verdict, Verdict::kAlive);
  EXPECT_EQ(look(seconds{100}, renewed_).verdict, Verdict::kFree);
}

// Whatever its clock says, or ours: its renewals are counted by our steady clock.
TEST_F(SecondLookTest, AHolderWithAnotherClockIsAliveAsLongAsItRenews) {
  for (const int year : {2019, 2026, 2035}) {
    seen_.reset();
    for (int i = 0; i < 20; ++i) {
      const LeaseHolder held{
          "n1/b", std::to_string(year) + "-01-01T00:00:" + std::to_string(10 + i) + "Z", 40};
      const Verdict verdict = look(seconds{10 * i}, held).verdict;
      EXPECT_EQ(verdict, i == 0 ? Verdict::kWait : Verdict::kAlive) << year;
    }
    const LeaseHolder last{"n1/b", std::to_string(year) + "-01-01T00:00:29Z", 40};
    EXPECT_EQ(look(seconds{239}, last).verdict, Verdict::kAlive);
    EXPECT_EQ(look(seconds{240}, last).verdict, Verdict::kFree);
  }
}

TEST_F(SecondLookTest, AThirdHolderIsLookedAtAnewAndOneThatLetGoIsForgotten) {
  look({}, first_);
  const HolderRuling third = look(seconds{50}, {"n1/c", kLater, 40});
  EXPECT_EQ(third.verdict, Verdict::kWait);
  EXPECT_EQ(third.again, kStart + seconds{100});
  EXPECT_EQ(look(seconds{60}, {"", "", 40}).verdict, Verdict::kFree);
  EXPECT_FALSE(seen_);
}

TEST(JudgeHolderTest, NobodyIsWaitedForLongerThanTenMinutes) {
  for (const int duration : {481, 3600, 2147483647}) {
    EXPECT_EQ(judge_holder({"n1/b", kJustNow, duration}, "n1/a", std::nullopt, kStart).again,
              kStart + std::chrono::minutes{10})
        << duration;
  }
}

TEST(HeldByAnotherTest, SaysWhoSinceWhenAndWhatToDo) {
  EXPECT_THAT(held_by_another("n1", {"n1/b", kJustNow, 40}),
              AllOf(HasSubstr("Node n1"), HasSubstr("n1/b"), HasSubstr(kJustNow),
                    HasSubstr("--nodename"), HasSubstr("stop slurmlet")));
}

}  // namespace lease_holder_test
}  // namespace slurmlet::node
