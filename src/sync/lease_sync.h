#pragma once

// Keeps the node's Lease renewed: the heartbeat by which Kubernetes knows that this node is alive.
//
// A step object that runs on a thread and a connection of its own, so that no other call can make
// it late. Never creates a Lease before the Node's uid is known, keeps the ownerReference on the
// live Node, writes a strictly increasing renewTime, and reads the Lease only after a conflict.
// Not thread-safe but for node_uid and status, which are Published.

#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/published.h"
#include "kube/api.h"

namespace slurmlet::sync {

struct LeaseOptions {
  std::string node_name;
  std::string holder_identity;
  std::chrono::seconds duration{40};
};

struct LeaseStatus {
  std::optional<WallTime> renewed_at;
  std::optional<SteadyTime> renewed_steady;
  std::string last_error;  // "" after a success
};

class LeaseSync {
 public:
  LeaseSync(kube::LeaseApi& api, LeaseOptions options, Random random,
            const Published<std::string>& node_uid, Published<LeaseStatus>& status);

  // Renews when due. Returns the next wake-up; kNever while there is no Node.
  SteadyTime step(Now now);

 private:
  Status renew(Now now, const std::string& uid);
  Status write(Now now, const std::string& uid);
  Status load();
  void succeeded(Now now);

  kube::LeaseApi& api_;
  LeaseOptions options_;
  Random random_;
  const Published<std::string>& node_uid_;
  Published<LeaseStatus>& status_;
  Backoff backoff_;
  std::optional<kube::Lease> lease_;  // as the server last returned it
  std::string lease_uid_;             // Node uid that lease_ was written for
  WallTime last_renew_{};
  SteadyTime next_{};
  bool failing_ = false;
};

}  // namespace slurmlet::sync
