#pragma once

// Leader election by a Lease, as in client-go (LeaderElectionConfig: 15 s lease, 10 s to renew it,
// tries every 2 s). Another holder's Lease has expired when it has not changed for its duration by
// our own steady clock, so clocks need not agree.
//
// Callers check leads() with a fresh time before each action, since the process may have been
// stopped (SIGSTOP, a hung machine). A step object; one thread, that of the API's client.

#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"

namespace slurmlet::op {

// One per Slurm cluster: "slurmlet-operator-alps". Characters that a Lease's name cannot have
// become "-", and a hash of the ClusterName is appended.
std::string leader_lease(const std::string& cluster);

// Of this process, in client-go's format: "head1_0123456789abcdef".
std::string leader_identity();
// Its host: "head1".
std::string host_of_leader(const std::string& identity);

class Leader {
 public:
  static constexpr std::chrono::seconds kLease{15};
  static constexpr std::chrono::seconds kRenewWithin{10};
  static constexpr std::chrono::seconds kTry{2};

  // `name`: leader_lease(). `identity` must be unique to this process.
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
  // Why the last try failed; "" = it succeeded.
  const std::string& problem() const { return problem_; }
  // Frees the Lease at an orderly end, so that the next leader need not wait.
  void resign(Now now);

 private:
  Status try_to_hold(Now now);
  Status write(Now now);
  void observe(kube::Lease lease, SteadyTime now);

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
