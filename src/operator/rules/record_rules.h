#pragma once

// Decides which records are written now, and in which order. A record is written when it changes,
// and each refresh to show that the operator is alive. Nodes that go out of service come first,
// then other changes of state, then changes by jobs and refreshes. Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "operator/rules/site.h"

namespace slurmlet::op {

// Intervals of dumps and of refreshes; each Node's refresh comes up to a fifth earlier, by its
// name. From 5,000 nodes both grow with the site, up to 1 and 10 minutes, so that load stays
// constant.
struct SitePace {
  Duration dump;
  Duration refresh;
};
SitePace site_pace(std::size_t nodes);

// What the last dumps say about all nodes.
struct DumpReport {
  std::string cluster;
  std::optional<WallTime> dumped_at;       // last good one
  std::string failure = {};                // of the last dump; "" = it succeeded
  std::optional<WallTime> failed_at = {};  // set while dumps fail
  Duration interval = site_pace(0).dump;   // between dumps
  Duration refresh = site_pace(0).refresh;
  bool operator==(const DumpReport&) const = default;
};

// In the order of writing. kRoutine: jobs changed, or a refresh is due.
enum class Urgency : std::uint8_t { kOutOfService, kState, kRoutine, kNone };

std::uint64_t record_hash(std::string_view cluster, std::string_view text);

// `before`: the node in the previous dump; nullptr = not known.
Urgency rule_record(const KubeNode& node, const SlurmNode& slurm, const SlurmNode* before,
                    const DumpReport& dump, WallTime now);

}  // namespace slurmlet::op
