#pragma once

// What the Node loop and the Lease loop, on two threads, report to each other.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/published.h"
#include "base/wakeup.h"
#include "node/lease_holder.h"

namespace slurmlet::sync {

struct LeaseStatus {
  std::optional<WallTime> renewed_at;
  std::optional<SteadyTime> renewed_steady;
  std::string last_error;  // without the request; "" after a success
  // When another machine was last found holding it, and which.
  std::optional<SteadyTime> foreign_at{};
  std::optional<node::HolderSighting> foreign_holder{};
};

// When the first renewal is due, and over how long those of this site begin.
struct LeaseStart {
  SteadyTime at{};
  Duration spread{};
};

struct LeaseLink {
  // By NodeSync: uid of the live Node; "" = there is none of ours; nothing = not looked up yet.
  Published<std::string> node_uid;
  // Readable after set_uid() and set_start(): all that the Lease waits for from NodeSync's thread.
  Wakeup changed;
  // By NodeSync, before node_uid: a holder found dead, whose Lease may be taken over while it is
  // still the holder.
  Published<node::LeaseHolder> dead_holder;
  // By NodeSync.
  Published<LeaseStart> start;
  // By LeaseSync.
  Published<LeaseStatus> status;

  void set_uid(std::string uid) {
    node_uid.set(std::move(uid));
    changed.notify();
  }
  void set_start(LeaseStart begin) {
    start.set(begin);
    changed.notify();
  }
  // What it was about is over.
  void forget() {
    dead_holder.set({});
    status.set({});
    set_uid("");
  }
};

}  // namespace slurmlet::sync
