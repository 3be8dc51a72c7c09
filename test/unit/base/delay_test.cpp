#include "base/delay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fixed_random.h"

namespace slurmlet {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DelayTable, EachCauseHasItsRowAndNoneIsTheSameForAll) {
  std::set<std::string_view> names;
  int index = 0;
  for (const auto& rule : delay_table()) {
    SCOPED_TRACE(rule.what);
    EXPECT_EQ(static_cast<int>(rule.cause), index++);
    EXPECT_TRUE(names.insert(rule.what).second);
    if (rule.nodes_per_second > 0) {
      EXPECT_EQ(rule.to, Duration::zero()) << "the site's size decides";
    } else if (rule.of.empty()) {
      // Those whom one event hit must not come back within the same tenth of what they wait.
      EXPECT_LE(rule.from * 3, rule.to * 2) << "too narrow";
      EXPECT_GT(rule.to, Duration::zero());
      EXPECT_TRUE(rule.cap == Duration::zero() || rule.cap >= rule.to);
    } else {
      EXPECT_LT(rule.from_percent, rule.to_percent);
    }
  }
  EXPECT_EQ(delay_rule(Delay::kPortRetry).cause, Delay::kPortRetry);
}

TEST(DelayTable, ADelayIsAnywhereBetweenItsBounds) {
  for (const auto& rule : delay_table()) {
    SCOPED_TRACE(rule.what);
    if (rule.of.empty() && rule.nodes_per_second == 0) {
      EXPECT_EQ(delay(rule.cause, fakes::fixed_random(0.0)), rule.from);
      EXPECT_EQ(delay(rule.cause, fakes::fixed_random(1.0)), rule.to);
    } else if (!rule.of.empty()) {
      EXPECT_EQ(delay(rule.cause, fakes::fixed_random(0.0), seconds{100}),
                seconds{rule.from_percent});
      EXPECT_EQ(delay(rule.cause, fakes::fixed_random(1.0), seconds{100}),
                seconds{rule.to_percent});
    }
  }
}

// The very first retry: all would come at once if the first delay were fixed.
TEST(DelayTable, EveryBackOffSpreadsItsFirstDelay) {
  for (const auto& rule : delay_table()) {
    if (rule.of.empty() && rule.nodes_per_second == 0) {
      SCOPED_TRACE(rule.what);
      EXPECT_EQ(Backoff(rule.cause, fakes::fixed_random(0.0)).next(), rule.from);
      EXPECT_EQ(Backoff(rule.cause, fakes::fixed_random(1.0)).next(), rule.to);
    }
  }
}

// The most of these nodes whose place is in one second of a minute.
int most_in_a_second(const std::vector<SitePlace>& nodes) {
  std::map<std::int64_t, int> in_second;
  for (const SitePlace& node : nodes) {
    const Duration at = node.in(seconds{60}, "x:");
    EXPECT_GE(at, Duration::zero());
    EXPECT_LT(at, seconds{60});
    ++in_second[at / seconds{1}];
  }
  EXPECT_EQ(in_second.size(), 60U);
  return std::max_element(in_second.begin(), in_second.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

TEST(SitePlace, TheNodesOfASiteComeEvenlyAndSoDoNeighbours) {
  std::vector<SitePlace> all;
  for (int i = 0; i < 6000; ++i) {
    all.emplace_back("nid" + std::to_string(100000 + i));
  }
  EXPECT_LT(most_in_a_second(all), 150);
  EXPECT_LT(most_in_a_second({all.begin(), all.begin() + 3000}), 90);
  const SitePlace node{"n"};
  EXPECT_NE(node.in(hours{1}, "x:"), node.in(hours{1}, "y:"));
  EXPECT_EQ(node.in(Duration::zero(), "x:"), Duration::zero());
}

TEST(SitePlace, TheOwnTimeComesOncePerInterval) {
  for (const SitePlace& node : {SitePlace{"n1"}, SitePlace{"n1", 10'000}}) {
    fakes::FakeClock clock;
    for (int i = 0; i < 100; ++i) {
      const Duration until = node.until_own_time(seconds{60}, "x:", clock.now().wall);
      EXPECT_GT(until, Duration::zero());
      EXPECT_LE(until, seconds{60});
      clock.advance(until);
      EXPECT_EQ(node.until_own_time(seconds{60}, "x:", clock.now().wall), seconds{60});
      clock.advance(milliseconds{777});
    }
  }
}

TEST(DelayTable, ASiteSpreadsByItsSizeAndASmallOneNotAtAll) {
  EXPECT_EQ(site_delay(Delay::kStart, 0), Duration::zero());
  EXPECT_EQ(site_delay(Delay::kStart, kSmallSite), Duration::zero());
  EXPECT_GT(site_delay(Delay::kStart, 6'650), seconds{10});
  for (const Delay cause : {Delay::kStart, Delay::kNews, Delay::kHeldLease}) {
    EXPECT_GE(site_delay(cause, 10'000), site_delay(cause, 6'650));
  }
  EXPECT_LE(site_delay(Delay::kHeldLease, 131'072), seconds{5}) << "MaxNodeCount";
}

}  // namespace
}  // namespace slurmlet
