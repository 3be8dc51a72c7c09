#pragma once

// Decides which Slurm nodes are drained because a condition of their Node is bad (drainOn), and
// when such a drain ends. Its Reason is "slurmlet: TYPE: message [UID of the Node]". It ends once
// that condition, and each other of drainOn that the Node has, has been good for kGoodFor while the
// Node is Ready: an absent or Unknown condition is not good. At most maxUnhealthy of each partition
// is drained at once, but always one node. A cordon and the deletion of a Machine come first. Pure.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/rules/drain_rules.h"

namespace slurmlet::op {

inline constexpr Duration kGoodFor = std::chrono::minutes{10};

struct BadCondition {
  std::string type, status;  // of a Node
  Duration lasting{};        // before it drains
  bool operator==(const BadCondition&) const = default;
};

struct HealthPolicy {
  std::vector<BadCondition> drain_on;  // none: nothing is done
  int max_unhealthy = 10;              // percent of a partition
  bool operator==(const HealthPolicy&) const = default;
};

// Whose state must be known, but for Ready.
std::set<std::string> condition_types(const HealthPolicy& policy);

struct HealthFacts {
  const KubeNode* node;
  const SlurmNode* slurm;  // certainly the Node's
  MachineOf machine = MachineOf::kNone;
};

struct HealthRuling {
  const HealthFacts* facts;
  DrainAction action = DrainAction::kNone;
  std::string reason = {};     // the new one
  std::string why = {};        // for people
  std::string waits_for = {};  // why a wanted drain is not begun; for people
};

// `all`: the dump's nodes, of which partitions consist. Rulings without action are left out.
std::vector<HealthRuling> rule_health(const HealthPolicy& policy,
                                      const std::vector<HealthFacts>& facts,
                                      const std::map<std::string, SlurmNode>& all, WallTime now);

// Of one node alone: whether, and why, its drain ends.
HealthRuling rule_health_end(const HealthPolicy& policy, const HealthFacts& facts, WallTime now);

}  // namespace slurmlet::op
