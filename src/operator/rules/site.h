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

// One Node that a slurmlet registered.
struct KubeNode {
  std::string name, uid;
  std::string slurm_node;      // as its daemon says, "" before it knows
  bool unschedulable = false;  // cordoned
  bool deleting = false;
  std::optional<Published> record;
  std::string provider_id = {};
  std::string detach = {};  // the annotation
  // By Cluster API's annotations, as NAMESPACE/NAME; "" = it is of none.
  std::string machine = {}, cluster = {};
  std::string host_uuid = {};  // of Metal3, by its label
  bool operator==(const KubeNode&) const = default;
};

}  // namespace slurmlet::op
