#include "slurm/sources/poll_pace.h"

#include <gmock/gmock.h>

namespace slurmlet::slurm {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

PollSettings of(std::int64_t nodes) { return poll_pace({}, nodes); }

// Each query lists N nodes, 5 µs each (measured; bench/slurmctld_load.py).
TEST(PollPace, AllNodesTogetherTakeAHundredthOfSlurmctldsTime) {
  for (const std::int64_t nodes : {1, 100, 346, 347, 1000, 2000, 3000}) {
    const PollSettings pace = of(nodes);
    const double seconds_each = 5e-6 * static_cast<double>(nodes);
    const double share = static_cast<double>(nodes) * seconds_each /
                         std::chrono::duration<double>(pace.interval).count();
    EXPECT_LE(share, 0.0101) << nodes;
    const double at_once = static_cast<double>(nodes) * seconds_each /
                           std::chrono::duration<double>(pace.spread).count();
    EXPECT_LE(at_once, 0.0401) << nodes << ": what all of them query on evidence";
    EXPECT_LE(pace.spread, pace.interval);
    EXPECT_GT(pace.stale_after, pace.interval);
    EXPECT_GE(pace.max_backoff, pace.spread);
    EXPECT_EQ(pace.too_many, "");
  }
}

TEST(PollPace, TheIntervalIsThatOfTheDocuments) {
  EXPECT_EQ(poll_pace({}, {}).interval, seconds{60});
  EXPECT_EQ(of(1).interval, seconds{60});
  EXPECT_EQ(of(346).interval, seconds{60});
  EXPECT_GT(of(347).interval, seconds{60});
  EXPECT_EQ(of(1000).interval, seconds{500});
  EXPECT_EQ(of(3000).interval, minutes{75});
}

TEST(PollPace, LargerSitesNeedTheOperatorWhateverTheInterval) {
  EXPECT_THAT(of(3001).too_many, HasSubstr("3001 nodes"));
  EXPECT_THAT(poll_pace({.interval = minutes{60}}, 10'000).too_many, HasSubstr("10000 nodes"));
  EXPECT_THAT(pace_text(of(3001)), HasSubstr("slurmlet-operator"));
}

TEST(PollPace, SettingsAreKeptButForWhatWouldMakeEveryAnswerStale) {
  const PollSettings pace = poll_pace(
      {.interval = seconds{30}, .stale_after = seconds{90}, .max_backoff = minutes{2}}, 1000);
  EXPECT_EQ(pace.interval, seconds{30});
  EXPECT_EQ(pace.stale_after, seconds{90});
  EXPECT_EQ(pace.max_backoff, minutes{2});
  EXPECT_EQ(pace_text(pace), "every 30 s");
  const PollSettings slow = poll_pace({.stale_after = minutes{2}, .max_backoff = minutes{1}}, 3000);
  EXPECT_GT(slow.stale_after, slow.interval);
  EXPECT_GE(slow.max_backoff, slow.spread);
}

TEST(PollPace, SaysWhereTheIntervalComesFrom) {
  EXPECT_EQ(pace_text(of(1)), "every 60 s (slurm.pollInterval is auto: 1 node in slurm.conf)");
  EXPECT_THAT(pace_text(poll_pace({}, {})), HasSubstr("the number of nodes is not known"));
}

TEST(PollPace, OneOfATestsMayBeShort) {
  const PollSettings pace = poll_pace({.interval = milliseconds{500}}, 1);
  EXPECT_EQ(pace.interval, milliseconds{500});
  EXPECT_LE(pace.spread, seconds{2});
}

}  // namespace
}  // namespace slurmlet::slurm
