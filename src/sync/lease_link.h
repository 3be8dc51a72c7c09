#pragma once

// What the loop of the Node and the loop of its Lease, which run on two threads, report to each
// other.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/published.h"
#include "base/wakeup.h"
#include "kube/api.h"
#include "node/lease_holder.h"

namespace slurmlet::sync {

struct LeaseStatus {
  std::optional<WallTime> renewed_at;
  std::optional<SteadyTime> renewed_steady;
  std::string last_error;  // without the request; "" after a success
  // When another machine was last found holding it, and which.
  std::optional<SteadyTime> refused_at{};
  std::optional<node::HolderSighting> refused_by{};
};

struct LeaseLink {
  // By NodeSync: uid of the live Node, "" while there is none that is ours.
  Published<std::string> node_uid;
  // Readable after set_uid(): the Lease waits for nothing else that NodeSync's thread does.
  Wakeup uid_news;
  // By NodeSync, before node_uid: the Lease as it was found, so that it is read once only.
  Published<kube::Lease> found;
  // By NodeSync, before node_uid: a foreign holder that was found dead, whose Lease may be taken
  // over as long as it is just this one.
  Published<node::LeaseHolder> dead_holder;
  // By NodeSync, before node_uid: over how long the nodes of this site begin.
  Published<Duration> start_spread;
  // By LeaseSync.
  Published<LeaseStatus> status;

  void set_uid(std::string uid) {
    node_uid.set(std::move(uid));
    uid_news.notify();
  }
  // What it was about is over.
  void forget() {
    dead_holder.set({});
    status.set({});
    set_uid("");
  }
};

}  // namespace slurmlet::sync
