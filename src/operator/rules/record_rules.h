#pragma once

// Which Nodes get their record written now, and in which order. A record is written when it
// changed, and again each refresh so that its reader knows that it is watched; nodes that go out of
// service come first, then other changes of state, then the traffic of jobs, then refreshes. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "operator/rules/site.h"

namespace slurmlet::op {

// How often all nodes are dumped, and when an unchanged record is written again, each Node up to a
// fifth earlier by its name. From 5,000 nodes on both grow with the site, to a minute and to ten,
// so that up to 10,000 neither slurmctld nor the API server nor the operator has more to do.
struct SitePace {
  Duration dump;
  Duration refresh;
};
SitePace site_pace(std::size_t nodes);

// What a dump, or its failure, says about all nodes.
struct DumpReport {
  std::string cluster;
  std::optional<WallTime> dumped_at;       // nothing before the first good one
  std::string failure = {};                // why there is no newer one; "" while dumps are good
  std::optional<WallTime> failed_at = {};  // when the last one failed; nothing while dumps are good
  Duration interval = site_pace(0).dump;   // between dumps
  Duration refresh = site_pace(0).refresh;
  bool operator==(const DumpReport&) const = default;
};

// In the order of writing.
// kRoutine: jobs came or went, or a refresh is due.
enum class Urgency : std::uint8_t { kOutOfService, kState, kRoutine, kNone };

std::uint64_t record_hash(std::string_view cluster, std::string_view text);

// `before` is the same node of the dump before; nullptr when it is not known. kNone: nothing to
// write now.
Urgency rule_record(const KubeNode& node, const SlurmNode& slurm, const SlurmNode* before,
                    const DumpReport& dump, WallTime now);

}  // namespace slurmlet::op
