#pragma once

// How fast slurmctld is queried about one node, so that what all nodes of the site do together is
// no burden: about kSiteQueriesPerSecond, two RPCs each, with up to 10,000 nodes, whatever happens
// to all of them at the same moment. Pure.
//
// The interval is 60 s up to 600 nodes and grows with them to 600 s from 6,000 on. What is wanted
// sooner than the cadence has it (the first query, a query on evidence) comes at the node's own
// place in a shorter interval, which grows with the site as well: nodes / kSiteQueriesPerSecond.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace slurmlet::slurm {

inline constexpr int kSiteQueriesPerSecond = 16;

struct PollSettings {
  Duration interval = std::chrono::seconds{60};
  // Over which all nodes spread what comes sooner; at most the interval is used.
  Duration first_spread = std::chrono::seconds{2};
  Duration evidence_spread = std::chrono::seconds{30};
  Duration stale_after = std::chrono::seconds{300};
  Duration first_retry = std::chrono::seconds{15};  // at most; and at least a third of it
  Duration max_backoff = std::chrono::seconds{300};
  Duration min_gap = std::chrono::seconds{5};
  int questions_per_hour = 60;                           // at most, in any hour
  Duration confirm_interval = std::chrono::minutes{10};  // between two full queries, at least
  // A site so large that its cadence alone leaves no room for queries beside it.
  bool has_room() const { return 2 * evidence_spread <= interval; }
  std::string why = {};  // of the interval, where it is automatic: for people
  bool operator==(const PollSettings&) const = default;
};

// The settings of the same names; nothing = automatic.
struct PollWishes {
  std::optional<Duration> interval = {}, stale_after = {}, max_backoff = {}, confirm_interval = {};
  std::optional<int> questions_per_hour = {};
};

// `nodes` is that of slurm.conf; nothing while it is not known.
PollSettings poll_pace(const PollWishes& wishes, std::optional<std::int64_t> nodes);

// "every 60 s (slurm.pollInterval is auto: 300 nodes in slurm.conf)"
std::string pace_text(const PollSettings& pace);

// What is `until` away in an interval, when the interval is only `spread` long: all nodes keep
// their order, and come evenly.
Duration hurried(Duration until, Duration interval, Duration spread);

}  // namespace slurmlet::slurm
