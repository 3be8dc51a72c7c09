#include "slurm/sources/poll_pace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/delay.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::duration_cast;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kShortest = seconds{60};
constexpr Duration kLongest = seconds{600};
constexpr std::int64_t kNodesOfShortest = 600;

std::string text(Duration duration) {
  return fmt::format("{} s", duration_cast<seconds>(duration).count());
}

// By the number of nodes, but never so long that an explicit setting would not fit it.
Duration automatic(const PollWishes& wishes, std::optional<std::int64_t> nodes, std::string& why) {
  if (!nodes) {
    why = "the number of nodes is not known";
    return kShortest;
  }
  why = counted(*nodes, "node") + " in slurm.conf";
  const std::int64_t most = kNodesOfShortest * (kLongest / kShortest);
  const Duration by_nodes =
      std::max(kShortest, kShortest * std::min(*nodes, most) / kNodesOfShortest);
  Duration fits = by_nodes;
  if (wishes.stale_after) {
    fits = std::min(fits, *wishes.stale_after / 3);
  }
  if (wishes.max_backoff) {
    fits = std::min(fits, *wishes.max_backoff);
  }
  fits = std::max(fits, kShortest);
  if (fits < by_nodes) {
    why += fmt::format(
        "; {} but for slurm.{}", text(by_nodes),
        wishes.stale_after && *wishes.stale_after / 3 <= fits ? "staleAfter" : "maxBackoff");
  }
  return fits;
}

}  // namespace

PollSettings poll_pace(const PollWishes& wishes, std::optional<std::int64_t> nodes) {
  PollSettings pace;
  pace.interval = wishes.interval ? *wishes.interval : automatic(wishes, nodes, pace.why);
  pace.stale_after = wishes.stale_after.value_or(std::max<Duration>(minutes{5}, 3 * pace.interval));
  const DelayRule& retry = delay_rule(Delay::kQueryRetry);
  pace.max_backoff = wishes.max_backoff.value_or(std::max(retry.cap, pace.interval));
  pace.confirm_interval =
      wishes.confirm_interval.value_or(std::max<Duration>(minutes{10}, 10 * pace.interval));
  const auto twice =
      static_cast<int>(2 * std::chrono::hours{1} / std::max(pace.interval, kShortest));
  pace.questions_per_hour = wishes.questions_per_hour.value_or(std::clamp(twice, 12, 60));
  const Duration site = seconds{1} * nodes.value_or(0) / kSiteQueriesPerSecond;
  const Duration half = pace.interval / 2;
  pace.first_spread =
      nodes ? std::clamp(site, std::min(delay_rule(Delay::kFirstQuery).to, pace.interval),
                         pace.interval)
            : half;
  pace.evidence_spread =
      std::clamp(site, std::min(delay_rule(Delay::kEvidence).to, half), pace.interval);
  pace.first_retry = std::min(std::max(site / 2, retry.to), pace.max_backoff);
  return pace;
}

std::string pace_text(const PollSettings& pace) {
  return "every " + text(pace.interval) +
         (pace.why.empty() ? "" : " (slurm.pollInterval is auto: " + pace.why + ")");
}

Duration hurried(Duration until, Duration interval, Duration spread) {
  if (spread >= interval || interval <= Duration::zero()) {
    return until;
  }
  const double part = static_cast<double>(spread.count()) / static_cast<double>(interval.count());
  return Duration{static_cast<Duration::rep>(static_cast<double>(until.count()) * part)};
}

}  // namespace slurmlet::slurm
