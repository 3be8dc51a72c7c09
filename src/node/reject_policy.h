#pragma once

// When a pod bound to this node is failed. At once, unless its controller keeps re-creating pods
// here: each round of re-creation waits longer (1, 2, 4 … seconds up to a cap), so that a
// ReplicaSet with our nodeName costs the API server a few requests a minute instead of thirty a
// second (kubernetes#120160). Pods without a controller never wait.
//
// A round is what one controller brings within a second of the round's first pod, so all replicas
// of a workload that arrive together are failed together. Pure state machine; not thread-safe.

#include <map>
#include <string>

#include "base/clock.h"

namespace slurmlet::node {

class RejectPolicy {
 public:
  explicit RejectPolicy(Duration max_delay) : max_delay_(max_delay) {}

  // When the pod that `owner` (its controller's uid, "" for none) brought just now is to be failed.
  SteadyTime due(const std::string& owner, SteadyTime now);

  // How often this owner has come back; 0 for a newcomer.
  int rounds(const std::string& owner) const;

  // Forgets owners that stayed away for ten times the cap (at least ten minutes). Beyond 1024
  // owners, the one that stayed away longest is forgotten for each new one.
  void forget_idle(SteadyTime now);
  std::size_t owners() const { return owners_.size(); }

 private:
  struct Owner {
    int rounds = 0;
    int pods_in_round = 0;
    SteadyTime round_start{};
    SteadyTime due{};
    SteadyTime last_seen{};
  };
  Duration max_delay_;
  std::map<std::string, Owner> owners_;
};

}  // namespace slurmlet::node
