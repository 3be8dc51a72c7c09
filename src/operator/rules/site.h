#pragma once

// What the operator sees of a site, as plain values: slurmctld's nodes by its last dump, and the
// Nodes of the API server by their watch. Values only.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "node/facts.h"

namespace slurmlet::op {

// One node of a dump. Small: there are ten thousand of them.
struct SlurmNode {
  std::string name;
  std::string hostname;  // NodeHostName
  node::SlurmState state;
  std::string reason;        // "" if none
  std::string text;          // its record of the dump: what is published (record_text.h)
  std::string address = {};  // NodeAddr
  bool operator==(const SlurmNode&) const = default;
};

// What is published on a Node now.
struct Published {
  std::uint64_t hash = 0;  // of the cluster and the text
  std::optional<WallTime> dumped_at;
  std::optional<WallTime> failed_at;   // while dumps fail
  Duration refresh = Duration::max();  // that it promises
  bool operator==(const Published&) const = default;
};

// Whether a Node is of the operator's Slurm cluster, by the ClusterName that its daemon reports.
// Nothing is done to the others, or on their word.
enum class Belongs : std::uint8_t { kUnknown, kHere, kElsewhere };

// One Node that a slurmlet registered.
struct KubeNode {
  std::string name, uid;
  std::string slurm_node;      // as its daemon reports, "" before it knows
  bool unschedulable = false;  // cordoned
  bool deleting = false;
  std::optional<Published> record;
  std::string provider_id = {};
  std::string detach = {}, drain = {};  // the operator's annotations
  // By Cluster API's annotations, as NAMESPACE/NAME; "" = it is of none.
  std::string machine = {}, cluster = {};
  Belongs belongs = Belongs::kUnknown;
  bool operator==(const KubeNode&) const = default;
};

}  // namespace slurmlet::op
