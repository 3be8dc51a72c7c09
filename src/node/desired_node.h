#pragma once

// desired_node: the one place that decides what is reported to the cluster about this machine.
//
// Turns one HostFacts snapshot into the Node this daemon wants the API server to hold. Pure: no
// clock, no I/O, no logging, no JSON. Same facts, same node. Not here: reading facts (slurm/,
// host/, metal3/), comparing (node_diff.h), sending (kube/).

#include <optional>
#include <string>
#include <utility>

#include "node/conditions.h"
#include "node/facts.h"
#include "node/node.h"
#include "node/policy.h"

namespace slurmlet::node {

DesiredNode desired_node(const HostFacts& facts, const NodePolicy& policy,
                         const ReadyContext& ready_context, const std::string& slurmlet_version);

// Makes it anew only where what it is made of has changed: most turns of the loop change nothing.
class DesiredNodeMaker {
 public:
  // Both count for good.
  DesiredNodeMaker(const NodePolicy& policy, std::string slurmlet_version)
      : policy_(policy), version_(std::move(slurmlet_version)) {}

  // Nothing where it would be the same as that of the last call.
  std::optional<DesiredNode> follow(const HostFacts& facts, const ReadyContext& ready_context);

 private:
  const NodePolicy& policy_;
  std::string version_;
  HostFacts facts_;
  std::optional<ReadyContext> ready_context_;  // nothing before the first call
};

}  // namespace slurmlet::node
