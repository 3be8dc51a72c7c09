#pragma once

// Of several operators one acts: the holder of a Lease, as client-go's leader election has it
// (LeaderElectionConfig: 15 s lease, 10 s to renew it, tries every 2 s). Another's Lease is free
// when it has not changed for its duration by our own steady clock; whose clock is right does not
// matter.
//
// A process that was stopped (SIGSTOP, a machine that hung) finds out by leads(), with the time
// read anew, before each thing it does. A step object; one thread, that of the API's client.

#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"

namespace slurmlet::op {

// One for each Slurm cluster: "slurmlet-operator-alps". What no name of a Lease may have becomes
// "-", with a hash of the ClusterName behind it.
std::string leader_lease(const std::string& cluster);

class Leader {
 public:
  static constexpr std::chrono::seconds kLease{15};
  static constexpr std::chrono::seconds kRenewWithin{10};
  static constexpr std::chrono::seconds kTry{2};

  // `name`: leader_lease(). `identity` must be this process's own: host name and something random.
  Leader(kube::LeaseApi& api, std::string name, std::string identity, Random random,
         const Clock& clock)
      : api_(api),
        name_(std::move(name)),
        identity_(std::move(identity)),
        random_(std::move(random)),
        clock_(clock) {}

  SteadyTime step(Now now);
  // Whether we may act at `now`.
  bool leads(SteadyTime now) const { return now < leads_until_; }
  // Why the last try failed; "" if it did not.
  const std::string& problem() const { return problem_; }
  // At an orderly end: the other need not wait.
  void resign(Now now);

 private:
  Status try_to_hold(Now now);
  Status write(Now now);
  void look(kube::Lease lease, SteadyTime now);

  kube::LeaseApi& api_;
  const std::string name_, identity_;
  Random random_;
  const Clock& clock_;
  kube::Lease seen_;  // as the server last showed it
  SteadyTime seen_at_{};
  SteadyTime leads_until_{};
  SteadyTime next_{};
  std::string problem_;
};

}  // namespace slurmlet::op
