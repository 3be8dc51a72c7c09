#pragma once

// The operator's view of a site: slurmctld's nodes and the API server's Nodes. Values only.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "node/facts.h"
#include "node/node.h"
#include "node/vocabulary.h"

namespace slurmlet::op {

// One node of a dump. Small: there are ten thousand of them.
struct SlurmNode {
  std::string name;
  std::string hostname;  // NodeHostName
  node::SlurmState state;
  std::string reason;                        // "" if none
  std::string text;                          // its published record (record_text.h)
  std::string address = {};                  // NodeAddr
  std::vector<std::string> partitions = {};  // none, too, where they are not known
  bool operator==(const SlurmNode&) const = default;

  // Jobs run or end there.
  bool is_busy() const {
    return state.base == "ALLOCATED" || state.base == "MIXED" || state.has("COMPLETING");
  }
  bool is_rebooting() const { return state.has("REBOOT_REQUESTED") || state.has("REBOOT_ISSUED"); }
};

// The record on a Node.
struct Published {
  std::uint64_t hash = 0;  // of the cluster and the text
  std::optional<WallTime> dumped_at;
  std::optional<WallTime> failed_at;   // while dumps fail
  Duration refresh = Duration::max();  // as announced in it
  bool operator==(const Published&) const = default;
};

// Whether a Node belongs to the operator's Slurm cluster, by the ClusterName that its daemon
// reports. All others are ignored.
enum class Belongs : std::uint8_t { kUnknown, kHere, kElsewhere };

// One Node that a slurmlet registered.
struct KubeNode {
  std::string name, uid;
  std::string slurm_node;      // as its daemon reports; "" = not yet
  bool unschedulable = false;  // cordoned
  bool deleting = false;
  std::optional<Published> record;
  std::string provider_id = {};
  std::string detach = {}, drain = {};  // the operator's annotations
  // NAMESPACE/NAME by Cluster API's annotations; "" = none.
  std::string machine = {}, cluster = {};
  Belongs belongs = Belongs::kUnknown;
  std::vector<node::ObservedCondition> conditions = {};  // of drainOn, Ready, SlurmNodeAsleep
  bool operator==(const KubeNode&) const = default;

  // nullptr: it has none of this type.
  const node::ObservedCondition* condition(std::string_view type) const {
    const auto found = std::find_if(conditions.begin(), conditions.end(),
                                    [&](const auto& one) { return one.condition.type == type; });
    return found == conditions.end() ? nullptr : &*found;
  }
  bool is_ready() const {
    const auto* ready = condition(node::vocabulary::kReady);
    return ready != nullptr && ready->condition.status == "True";
  }
};

}  // namespace slurmlet::op
