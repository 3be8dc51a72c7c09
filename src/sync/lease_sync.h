#pragma once

// Keeps the node's Lease renewed: the heartbeat by which Kubernetes knows that this node is alive.
//
// A step object that runs on a thread and a connection of its own, so that no other call can make
// it late. A Lease that this machine holds from before a restart is renewed first, without a look
// at the Node: at a large site that takes a while. Never creates a Lease before the Node's uid is
// known, keeps the ownerReference on the live Node, writes a strictly increasing renewTime, and
// reads the Lease only after a conflict. A Lease that another machine holds and may still renew is
// never overwritten: that is an error, and it is read again after its duration. Not thread-safe but
// for the link, which is Published.

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"
#include "node/lease_holder.h"
#include "sync/lease_link.h"

namespace slurmlet::sync {

struct LeaseOptions {
  std::string node_name;
  std::string holder_identity;
  std::chrono::seconds duration{40};
  std::function<SteadyTime()> clock = std::chrono::steady_clock::now;  // measures latency
};

class LeaseSync {
 public:
  LeaseSync(kube::LeaseApi& api, LeaseOptions options, Random random, LeaseLink& link);

  // Renews when due. Returns the next wake-up; kNever while there is no Node.
  SteadyTime step(Now now);

 private:
  SteadyTime renew_held(Now now);
  Status renew(Now now, const std::string& uid);
  Status write(Now now, const std::string& uid);
  Status load(Now now, bool just_written);
  Status check_holder(Now now, bool just_written);
  void failed(const Error& error, Now now);
  void succeeded(Now now, Duration latency);

  kube::LeaseApi& api_;
  LeaseOptions options_;
  Random random_;
  LeaseLink& link_;
  Backoff backoff_;
  std::optional<kube::Lease> lease_;  // as the server last returned it
  std::string lease_uid_;             // Node uid that lease_ was written for
  bool holds_none_ = false;           // there is no Lease of ours from before this process
  std::optional<node::HolderSighting> foreign_;
  std::optional<SteadyTime> foreign_until_;  // held by another machine: read again then
  WallTime last_renew_{};
  SteadyTime next_{};
  bool failing_ = false;
  bool timed_out_ = false;  // the last attempt, whose write may have been made
};

}  // namespace slurmlet::sync
