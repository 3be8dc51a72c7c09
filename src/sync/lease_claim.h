#pragma once

// Whether this machine may have its Node, by who holds the Lease: one node, one daemon. Not
// thread-safe.

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"
#include "node/lease_holder.h"
#include "sync/lease_link.h"

namespace slurmlet::sync {

class LeaseClaim {
 public:
  // `holder_identity`: ours in the Lease, LeaseOptions::holder_identity.
  LeaseClaim(kube::LeaseApi& api, std::string holder_identity, Random random, LeaseLink& link);

  struct Pause {
    SteadyTime until{};
    std::string held;  // by which machine, for people; "" = that one may be dead
  };
  // Reads the Lease. Nothing: this machine may have the Node.
  Result<std::optional<Pause>> take(const std::string& node, Now now);
  // Why the Node is no longer ours: since take() the lease thread has found another machine
  // renewing it.
  std::optional<std::string> lost();

 private:
  Pause pause(const std::string& node, const node::LeaseHolder& held,
              const node::HolderRuling& ruling, SteadyTime now);

  kube::LeaseApi& api_;
  std::string holder_identity_;
  Random random_;
  LeaseLink& link_;
  std::optional<node::HolderSighting> foreign_;
  std::string last_logged_holder_;
  SteadyTime taken_at_{};
};

}  // namespace slurmlet::sync
