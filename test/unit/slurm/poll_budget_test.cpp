// The load on slurmctld, as properties of long simulated times.

#include "slurm/sources/poll_budget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "scripted_source.h"

namespace slurmlet::slurm {
namespace poll_budget_test {

using node::SlurmFailure;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const Now kStart{SteadyTime{hours{1000}}, WallTime{hours{500'000}}};

Now after(Duration elapsed) {
  return {kStart.steady + elapsed,
          kStart.wall + std::chrono::duration_cast<WallTime::duration>(elapsed)};
}

// Runs one poll for `length`; evidence comes `next_evidence()` after the one before.
void run(ControllerPoll& poll, Duration length, const std::function<Duration()>& next_evidence) {
  Duration at{};
  Duration evidence = next_evidence();
  while (at < length) {
    if (at >= evidence) {
      poll.ask_soon(after(at));
      evidence = at + next_evidence();
    }
    const Duration wake = poll.step(after(at)) - kStart.steady;
    at = std::max(at + milliseconds{1}, std::min({wake, evidence, length}));
  }
}

int most_in_an_hour(const std::vector<SteadyTime>& starts) {
  std::size_t most = 0;
  std::size_t first = 0;
  for (std::size_t last = 0; last < starts.size(); ++last) {
    while (starts[last] - starts[first] >= hours{1}) {
      ++first;
    }
    most = std::max(most, last - first + 1);
  }
  return static_cast<int>(most);
}

Duration longest_gap(const std::vector<SteadyTime>& starts) {
  Duration longest{};
  for (std::size_t i = 1; i < starts.size(); ++i) {
    longest = std::max(longest, starts[i] - starts[i - 1]);
  }
  return longest;
}

Duration shortest_gap(const std::vector<SteadyTime>& starts) {
  Duration shortest = hours{24};
  for (std::size_t i = 1; i < starts.size(); ++i) {
    shortest = std::min(shortest, starts[i] - starts[i - 1]);
  }
  return shortest;
}

struct Site {
  Duration interval;
  int per_hour;
};

const std::vector<Site> kSites{{seconds{60}, 60}, {seconds{600}, 60}, {seconds{5}, 60},
                               {seconds{60}, 12}, {seconds{60}, 600}, {seconds{600}, 6},
                               {seconds{61}, 60}, {seconds{10}, 360}};

PollSettings settings_of(const Site& site) {
  PollSettings settings;
  settings.interval = site.interval;
  settings.questions_per_hour = site.per_hour;
  return settings;
}

std::string text(const Site& site) {
  return fmt::format("every {} s, {} an hour",
                     std::chrono::duration_cast<seconds>(site.interval).count(), site.per_hour);
}

TEST(PollBudgetProperty, NoHourHasMoreQuestionsThanAllowedWhateverHappens) {
  constexpr SlurmFailure kCauses[] = {SlurmFailure::kTimeout, SlurmFailure::kMungeUnavailable,
                                      SlurmFailure::kNotInSlurm, SlurmFailure::kRateLimited};
  for (const auto& site : kSites) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      std::mt19937 random{seed};
      std::uniform_real_distribution<double> unit{0, 1};
      const double mean_s = std::pow(10.0, 0.5 + 2.5 * unit(random));  // 3 s … 1000 s
      const double failing = seed % 3 == 0 ? 0 : unit(random);
      AskedQuestions asked;
      asked.takes = [&] { return milliseconds{static_cast<int>(1 + 14'000 * unit(random))}; };
      asked.result = [&] {
        return unit(random) < failing ? failed_result(kCauses[random() % std::size(kCauses)])
                                      : good_result();
      };
      ControllerPoll poll{settings_of(site), fmt::format("nid{}", seed),
                          std::make_unique<ScriptedSource>(asked), [&] { return unit(random); }};
      run(poll, hours{10}, [&] {
        return milliseconds{static_cast<int>(-std::log(1 - unit(random)) * mean_s * 1000)};
      });
      ASSERT_GT(asked.at.size(), 10U);
      EXPECT_LE(most_in_an_hour(asked.at), site.per_hour) << text(site) << ", seed " << seed;
      EXPECT_EQ(poll.counters().questions, asked.at.size());
    }
  }
}

TEST(PollBudgetProperty, EvidenceNeverStarvesTheCadence) {
  for (const auto& site : kSites) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      std::mt19937 random{seed};
      std::uniform_real_distribution<double> unit{0, 1};
      const double mean_s = std::pow(10.0, 0.5 + 2.5 * unit(random));
      AskedQuestions asked;
      ControllerPoll poll{settings_of(site), fmt::format("nid{}", seed),
                          std::make_unique<ScriptedSource>(asked), [&] { return unit(random); }};
      run(poll, hours{10}, [&] {
        return milliseconds{static_cast<int>(-std::log(1 - unit(random)) * mean_s * 1000)};
      });
      const Duration interval = std::max(site.interval, Duration{hours{1}} / site.per_hour);
      EXPECT_LE(longest_gap(asked.at), interval * 3) << text(site) << ", seed " << seed;
      EXPECT_LE(most_in_an_hour(asked.at), site.per_hour);
      EXPECT_GE(shortest_gap(asked.at), std::min<Duration>(seconds{5}, interval * 3 / 4));
    }
  }
}

// An interval that is long beside the staleness bound.
TEST(PollBudgetProperty, EvidenceNeverMakesAnAnswerStale) {
  for (const Site& site : {Site{seconds{200}, 60}, Site{seconds{240}, 60}, Site{seconds{60}, 60}}) {
    for (unsigned seed = 0; seed < 4; ++seed) {
      std::mt19937 random{seed};
      AskedQuestions asked;
      ControllerPoll poll{settings_of(site), fmt::format("nid{}", seed),
                          std::make_unique<ScriptedSource>(asked), [] { return 0.5; }};
      run(poll, hours{10}, [&] { return milliseconds{random() % 400'000}; });
      EXPECT_LT(longest_gap(asked.at), seconds{300}) << text(site) << ", seed " << seed;
      EXPECT_LE(most_in_an_hour(asked.at), site.per_hour);
    }
  }
}

TEST(PollBudgetProperty, AQuietNodeIsAskedAboutNearlyEveryInterval) {
  AskedQuestions asked;
  ControllerPoll poll{{}, "nid000001", std::make_unique<ScriptedSource>(asked), [] { return 0.5; }};
  run(poll, hours{10}, [] { return hours{100}; });
  EXPECT_GE(asked.at.size(), 10 * 48U);
  EXPECT_LE(most_in_an_hour(asked.at), 58) << "some are left for evidence";
  EXPECT_LE(longest_gap(asked.at), seconds{121});
}

TEST(PollBudgetProperty, EvidenceIsAnsweredSoonOnAQuietNode) {
  // One job event every ten minutes, at any time of the interval and of the hour.
  std::mt19937 random{7};
  AskedQuestions asked;
  ControllerPoll poll{{}, "nid000001", std::make_unique<ScriptedSource>(asked), [] { return 0.5; }};
  std::vector<SteadyTime> events;
  Duration last{};
  run(poll, hours{20}, [&] {
    last += minutes{5} + milliseconds{random() % 600'000};
    events.push_back(kStart.steady + last);
    return last - (events.size() > 1 ? events[events.size() - 2] - kStart.steady : Duration{});
  });
  int late = 0;
  for (const auto event : events) {
    const auto next = std::lower_bound(asked.at.begin(), asked.at.end(), event);
    late += next != asked.at.end() && *next - event > seconds{35} ? 1 : 0;
  }
  EXPECT_LT(late, static_cast<int>(events.size()) / 5) << "of " << events.size();
}

// The time of the interval at which `node` asks.
Duration phase_of(const std::string& node, Duration interval) {
  AskedQuestions asked;
  PollSettings settings;
  settings.interval = interval;
  settings.first_spread = {};
  settings.stale_after = hours{24};
  ControllerPoll poll{settings, node, std::make_unique<ScriptedSource>(asked), [] { return 0.5; }};
  poll.step(after({}));
  const SteadyTime tick = poll.step(after(milliseconds{5}));
  return (tick - kStart.steady) % interval;
}

TEST(PollBudgetProperty, PhasesOfTenThousandNodesAreEven) {
  constexpr int kNodes = 10'000;
  constexpr std::size_t kBins = 60;
  for (const Duration interval : {Duration{seconds{60}}, Duration{seconds{600}}}) {
    std::vector<int> bins(kBins);
    for (int i = 1; i <= kNodes; ++i) {
      const Duration phase = phase_of(fmt::format("nid{:06}", i), interval);
      ++bins[static_cast<std::size_t>(phase * kBins / interval)];
    }
    constexpr double kExpected = double{kNodes} / kBins;
    double chi_square = 0;
    for (const int count : bins) {
      chi_square += (count - kExpected) * (count - kExpected) / kExpected;
    }
    EXPECT_LT(chi_square, 98.3) << "one even hash in a thousand exceeds this (59 degrees)";
    EXPECT_LT(*std::max_element(bins.begin(), bins.end()), 1.4 * kExpected);
  }
}

// A fleet whose slurmctld is away for half an hour: what it is asked afterwards, in each second.
TEST(PollBudgetProperty, AFleetComesBackSpreadOut) {
  constexpr std::size_t kNodes = 1'000;
  constexpr Duration kBack = minutes{30};
  std::mt19937 random{11};
  std::uniform_real_distribution<double> unit{0, 1};
  std::vector<int> asked_in_second(400);
  for (std::size_t i = 0; i < kNodes; ++i) {
    Duration now{};
    AskedQuestions asked;
    asked.result = [&] {
      return now < kBack ? failed_result(SlurmFailure::kControllerUnreachable) : good_result();
    };
    ControllerPoll poll{
        {}, fmt::format("nid{:06}", i + 1), std::make_unique<ScriptedSource>(asked), [&] {
          return unit(random);
        }};
    bool told = false;
    while (now < kBack + seconds{320}) {
      const Duration wake = poll.step(after(now)) - kStart.steady;
      const Duration event = told ? Duration{hours{9}} : Duration{kBack};
      now = std::max(now + milliseconds{1}, std::min(wake, event));
      if (!told && now >= kBack) {
        told = true;  // every slurmd registers at this moment
        poll.ask_soon(after(now));
      }
    }
    const auto first = std::lower_bound(asked.at.begin(), asked.at.end(), kStart.steady + kBack);
    ASSERT_NE(first, asked.at.end()) << "asked again within the longest back-off";
    ++asked_in_second[static_cast<std::size_t>((*first - kStart.steady - kBack) / seconds{1})];
  }
  // Evenly over 300 s there would be 3.3 in each.
  EXPECT_LE(*std::max_element(asked_in_second.begin(), asked_in_second.end()), 25);
  int in_ten = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    in_ten += asked_in_second[i];
  }
  EXPECT_LE(in_ten, 150);
}

TEST(PollBudget, TheHourIsExact) {
  PollBudget budget{3, minutes{20}};
  const SteadyTime begin{hours{5}};
  for (const auto at : {minutes{0}, minutes{10}, minutes{59}}) {
    EXPECT_EQ(budget.open_at(begin + at), begin + at);
    budget.spend(begin + at);
  }
  EXPECT_EQ(budget.left(begin + minutes{59}), 0);
  EXPECT_EQ(budget.open_at(begin + minutes{59}), begin + hours{1});
  EXPECT_EQ(budget.left(begin + hours{1}), 1);
}

TEST(PollBudget, ARareCadenceLeavesTheRestToEvidence) {
  PollBudget budget{60, seconds{600}};
  const SteadyTime begin{hours{5}};
  int taken = 0;
  for (Duration at{}; at < hours{1}; at += seconds{1}) {
    taken += budget.take_token(begin + at) ? 1 : 0;
  }
  EXPECT_GE(taken, 48);
  EXPECT_LE(taken, 53);
  EXPECT_FALSE(budget.is_scarce(begin));
}

}  // namespace poll_budget_test
}  // namespace slurmlet::slurm
