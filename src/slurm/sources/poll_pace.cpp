#include "slurm/sources/poll_pace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/delay.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kShortest = seconds{60};
constexpr microseconds kForOneNode{5};  // slurmctld's time, in the answer to one query

// One second of slurmctld's time for all nodes together, by the share of it that they may take.
Duration for_all(std::int64_t nodes, int percent) {
  const std::int64_t counted = std::clamp<std::int64_t>(nodes, 0, kMostNodes);
  return kForOneNode * counted * counted * 100 / percent;
}

}  // namespace

PollSettings poll_pace(const PollWishes& wishes, std::optional<std::int64_t> nodes) {
  const std::int64_t known = nodes.value_or(0);
  PollSettings pace;
  pace.interval = wishes.interval.value_or(std::max(kShortest, for_all(known, 1)));
  if (!wishes.interval) {
    pace.why =
        nodes ? counted(*nodes, "node") + " in slurm.conf" : "the number of nodes is not known";
  }
  if (known > kMostNodes) {
    pace.too_many = fmt::format("slurm.conf has {} nodes or more", known);
  }
  pace.spread = std::clamp<Duration>(for_all(known, 4), delay_rule(Delay::kFirstQuery).to,
                                     std::max(pace.interval, delay_rule(Delay::kFirstQuery).to));
  // No setting may make every answer stale before the next one.
  pace.stale_after =
      std::max<Duration>(wishes.stale_after.value_or(minutes{5}), 3 * pace.interval / 2);
  pace.max_backoff = std::max<Duration>(
      wishes.max_backoff.value_or(delay_rule(Delay::kQueryRetry).cap), pace.spread);
  return pace;
}

std::string pace_text(const PollSettings& pace) {
  if (!pace.too_many.empty()) {
    return "not at all: " + pace.too_many + ", which needs slurmlet-operator";
  }
  return fmt::format("every {} s{}", std::chrono::duration_cast<seconds>(pace.interval).count(),
                     pace.why.empty() ? "" : " (slurm.pollInterval is auto: " + pace.why + ")");
}

}  // namespace slurmlet::slurm
