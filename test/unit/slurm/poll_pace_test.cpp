// How a site of any size loads slurmctld: the settings that follow from the number of nodes, and
// what all its nodes do together, with a clock that the test moves.

#include "slurm/sources/poll_pace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "record_fixture.h"
#include "scripted_source.h"
#include "slurm/sources/auto_source.h"
#include "slurm/sources/record_source.h"

namespace slurmlet::slurm {
namespace poll_pace_test {

using node::SlurmFailure;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(PollPace, TheIntervalFollowsTheNumberOfNodes) {
  const struct {
    std::optional<std::int64_t> nodes;
    Duration interval, stale_after, max_backoff, confirm;
    int per_hour;
    Duration first, evidence;
  } kRows[] = {
      {{}, seconds{60}, minutes{5}, minutes{5}, minutes{10}, 60, seconds{30}, seconds{30}},
      {1, seconds{60}, minutes{5}, minutes{5}, minutes{10}, 60, seconds{2}, seconds{30}},
      {600, seconds{60}, minutes{5}, minutes{5}, minutes{10}, 60, seconds{37}, seconds{37}},
      {1200, seconds{120}, minutes{6}, minutes{5}, minutes{20}, 60, seconds{75}, seconds{75}},
      {6000, seconds{600}, minutes{30}, minutes{10}, minutes{100}, 12, seconds{375}, seconds{375}},
      {10'000, seconds{600}, minutes{30}, minutes{10}, minutes{100}, 12, seconds{600},
       seconds{600}},
      {100'000, seconds{600}, minutes{30}, minutes{10}, minutes{100}, 12, seconds{600},
       seconds{600}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.nodes.value_or(-1));
    const PollSettings pace = poll_pace({}, row.nodes);
    EXPECT_EQ(pace.interval, row.interval);
    EXPECT_EQ(pace.stale_after, row.stale_after);
    EXPECT_EQ(pace.max_backoff, row.max_backoff);
    EXPECT_EQ(pace.confirm_interval, row.confirm);
    EXPECT_EQ(pace.questions_per_hour, row.per_hour);
    EXPECT_EQ(pace.first_spread, row.first);
    EXPECT_EQ(pace.evidence_spread, row.evidence);
    EXPECT_LE(pace.first_retry, pace.max_backoff);
  }
  EXPECT_EQ(poll_pace({}, 1200).why, "1200 nodes in slurm.conf");
  EXPECT_EQ(poll_pace({}, 1).why, "1 node in slurm.conf");
  EXPECT_THAT(poll_pace({}, {}).why, HasSubstr("not known"));
}

TEST(PollPace, WhatIsSetWins) {
  PollWishes wishes;
  wishes.interval = seconds{5};
  EXPECT_EQ(poll_pace(wishes, 10'000).interval, seconds{5});
  EXPECT_EQ(poll_pace(wishes, 10'000).stale_after, minutes{5});
  EXPECT_LE(poll_pace(wishes, 10'000).first_spread, seconds{5});
  EXPECT_LE(poll_pace(wishes, 10).evidence_spread, milliseconds{2500});
  EXPECT_EQ(poll_pace(wishes, 10'000).why, "");
  wishes.interval = minutes{10};
  EXPECT_EQ(poll_pace(wishes, 10).evidence_spread, seconds{30});
  EXPECT_EQ(poll_pace(wishes, 10).stale_after, minutes{30});
  EXPECT_EQ(poll_pace(wishes, 10).questions_per_hour, 12);

  PollWishes beside;
  beside.stale_after = minutes{10};
  EXPECT_EQ(poll_pace(beside, 10'000).interval, seconds{200});
  EXPECT_EQ(poll_pace(beside, 10'000).stale_after, minutes{10});
  EXPECT_THAT(poll_pace(beside, 10'000).why, HasSubstr("slurm.staleAfter"));
  beside = {};
  beside.max_backoff = seconds{100};
  EXPECT_EQ(poll_pace(beside, 10'000).interval, seconds{100});
  EXPECT_THAT(poll_pace(beside, 10'000).why, HasSubstr("slurm.maxBackoff"));
  beside.stale_after = seconds{70};
  EXPECT_EQ(poll_pace(beside, 10'000).interval, seconds{60});
}

TEST(PollPace, HurriedKeepsTheOrder) {
  EXPECT_EQ(hurried(seconds{40}, seconds{60}, seconds{30}), seconds{20});
  EXPECT_EQ(hurried(seconds{40}, seconds{60}, Duration::zero()), Duration::zero());
  EXPECT_EQ(hurried(seconds{40}, seconds{60}, seconds{90}), seconds{40});
}

// --- a site of 10,000 nodes, from its start on

constexpr int kNodes = 10'000;
constexpr int kRpcsPerQuery = 2;
constexpr int kMostRpcs = 40;
const Now kStart{SteadyTime{hours{1000}}, WallTime{hours{500'000}}};

Now after(Duration elapsed) {
  return {kStart.steady + elapsed,
          kStart.wall + std::chrono::duration_cast<WallTime::duration>(elapsed)};
}

struct Event {
  Duration at;
  int nodes;  // so many have evidence
};

struct Site {
  std::vector<Event> evidence = {};
  Duration away_from{}, away_until{};  // slurmctld
  Duration length = minutes{50};
  int nodes = kNodes;
};

// Queries in each second.
std::vector<int> queries(const Site& site) {
  std::vector<int> in_second(static_cast<std::size_t>(site.length / seconds{1}) + 1);
  std::mt19937 random{5};
  std::uniform_real_distribution<double> unit{0, 1};
  for (int i = 0; i < site.nodes; ++i) {
    Duration now{};
    AskedQuestions asked;
    asked.result = [&] {
      return now >= site.away_from && now < site.away_until
                 ? failed_result(SlurmFailure::kControllerUnreachable)
                 : good_result();
    };
    ControllerPoll poll{poll_pace({}, site.nodes), fmt::format("nid{:06}", i + 1),
                        std::make_unique<ScriptedSource>(asked), [&] { return unit(random); }};
    std::size_t event = 0;
    while (now < site.length) {
      Duration wake = poll.step(after(now)) - kStart.steady;
      if (event < site.evidence.size()) {
        wake = std::min(wake, site.evidence[event].at);
      }
      now = std::max(now + milliseconds{1}, wake);
      if (event < site.evidence.size() && now >= site.evidence[event].at) {
        if (i < site.evidence[event].nodes) {
          poll.ask_soon(after(now));
        }
        ++event;
      }
    }
    for (const auto at : asked.at) {
      ++in_second[static_cast<std::size_t>((at - kStart.steady) / seconds{1})];
    }
  }
  return in_second;
}

// RPCs a second, in any ten seconds: chance puts a few more into one second.
double most_rpcs(const std::vector<int>& in_second) {
  int most = 0;
  for (std::size_t i = 10; i < in_second.size(); ++i) {
    int sum = 0;
    for (std::size_t k = i - 10; k < i; ++k) {
      sum += in_second[k];
    }
    most = std::max(most, sum);
  }
  return most * kRpcsPerQuery / 10.0;
}

constexpr double kChance = 1.25;  // 200 queries in ten seconds, give or take three deviations

TEST(PollSite, AColdStartOfAll) { EXPECT_LE(most_rpcs(queries({})), kMostRpcs * kChance); }

TEST(PollSite, AJobOfHalfTheNodesStartsAndEnds) {
  EXPECT_LE(most_rpcs(queries({.evidence = {{minutes{20}, 5000}, {minutes{40}, 5000}}})),
            kMostRpcs * kChance);
}

TEST(PollSite, AllSlurmdRestart) {
  EXPECT_LE(most_rpcs(queries({.evidence = {{minutes{22}, kNodes}}})), kMostRpcs * kChance);
}

TEST(PollSite, SlurmctldRestarts) {
  for (const Duration away : {Duration{seconds{30}}, Duration{minutes{3}}}) {
    EXPECT_LE(most_rpcs(queries({.away_from = minutes{15}, .away_until = minutes{15} + away})),
              kMostRpcs * kChance)
        << away / seconds{1};
  }
}

// The operator's last records turn too old at the same moment everywhere, and sinfo is behind them.
TEST(PollSite, AnOperatorThatStopsIsReplacedOverAnInterval) {
  std::vector<int> in_second(60 * 60);
  std::mt19937 random{5};
  std::uniform_real_distribution<double> unit{0, 1};
  int fallen_back = 0;
  for (int i = 0; i < kNodes; i += 4) {  // a quarter of the nodes, counted four times
    Duration now = minutes{5};
    AskedQuestions asked;
    std::vector<std::unique_ptr<NodeSource>> sources;
    sources.push_back(std::make_unique<RecordSource>(false));
    sources.push_back(std::make_unique<ScriptedSource>(asked));
    const Random chance = [&] { return unit(random); };
    const std::string name = fmt::format("nid{:06}", i + 1);
    ControllerPoll poll{poll_pace({}, kNodes), name,
                        std::make_unique<AutoSource>(
                            std::move(sources), [](bool, const auto&) {}, chance),
                        chance};
    PublishedRecord record;
    record.dumped_at = std::chrono::floor<seconds>(after(now).wall);
    record.interval = seconds{30};
    record.refresh = minutes{5};
    record.text = scontrol_record(name);
    poll.set_record(to_annotation(record));
    while (now < minutes{42}) {
      const Duration wake = poll.step(after(now)) - kStart.steady;
      now = std::max(now + milliseconds{1}, wake);
    }
    fallen_back += asked.at.empty() ? 0 : 1;
    for (const auto at : asked.at) {
      in_second[static_cast<std::size_t>((at - kStart.steady) / seconds{1})] += 4;
    }
  }
  EXPECT_EQ(fallen_back, kNodes / 4);
  EXPECT_LE(most_rpcs(in_second), kMostRpcs * 1.5) << "a quarter of the nodes has twice the chance";
}

// Evidence is for people who wait: at a small site it is there within half a minute.
TEST(PollSite, EvidenceOfASmallSiteIsAnsweredSoon) {
  AskedQuestions asked;
  ControllerPoll poll{poll_pace({}, 300), "nid000007", std::make_unique<ScriptedSource>(asked),
                      [] { return 0.5; }};
  Duration now{};
  const auto run_until = [&](Duration end) {
    while (now < end) {
      now = std::clamp(Duration{poll.step(after(now)) - kStart.steady}, now + milliseconds{1}, end);
    }
    poll.step(after(now));
  };
  run_until(minutes{10});
  for (int i = 0; i < 20; ++i) {
    const std::size_t before = asked.at.size();
    poll.ask_soon(after(now));
    run_until(now + seconds{36});
    EXPECT_GT(asked.at.size(), before) << i;
    run_until(now + minutes{10} + seconds{7});
  }
}

}  // namespace poll_pace_test
}  // namespace slurmlet::slurm
