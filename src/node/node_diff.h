#pragma once

// node_diff: what must be written so that the Node on the API server becomes the desired one.
// Pure: no clock but the one handed in, no I/O, no JSON.
//
// Only what slurmlet owns is ever in a patch: its own condition types, its own label and annotation
// keys, its own resources. Labels, annotations, conditions, taints and resources of others stay.
// Strategic merge rules:
// https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/node.h"

namespace slurmlet::node {

struct PatchedCondition {
  Condition condition;
  std::string last_heartbeat_time;   // RFC 3339
  std::string last_transition_time;  // kept unless the status changed
  bool differs = true;               // false: only its times are renewed
  bool operator==(const PatchedCondition&) const = default;
};

// A strategic-merge patch of nodes/NAME/status. In maps a missing value means "remove this key".
struct NodePatch {
  std::string uid;  // always sent, so that a re-created Node is not adopted unseen
  std::map<std::string, std::optional<std::string>> labels;
  std::map<std::string, std::optional<std::string>> annotations;
  std::map<std::string, std::optional<std::string>> capacity;
  std::map<std::string, std::optional<std::string>> allocatable;
  std::vector<PatchedCondition> conditions;       // to set
  std::set<std::string> removed_conditions;       // all of these types ($patch: delete), first
  std::optional<std::vector<Address>> addresses;  // the whole list ($patch: replace)
  std::optional<NodeInfo> node_info;
  std::optional<int> kubelet_port;
  bool has_changes = false;  // something other than heartbeat times
  bool operator==(const NodePatch&) const = default;
};

// The patch that makes `observed` into `desired`; `patch.has_changes` is false when only heartbeat
// times would be written (the periodic report sends that).
NodePatch node_diff(const ObservedNode& observed, const DesiredNode& desired, WallTime now);

// `patch` without times, and without conditions of which only those are renewed: to tell whether
// two patches change the same.
NodePatch changes_of(NodePatch patch);

// Something that `patch` changes and `but` does not: "the label type", "the condition Ready". One
// line; "" where there is no such thing.
std::string example_of(const NodePatch& patch, const NodePatch& but = {});

}  // namespace slurmlet::node
