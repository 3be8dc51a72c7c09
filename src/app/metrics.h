#pragma once

// What the daemon counts, as Prometheus metric families for podapi's /metrics, and its health
// checks. The main thread publishes a report when it wakes anyway; a scrape only reads it.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/request_counter.h"
#include "node/facts.h"
#include "podapi/routes.h"
#include "slurm/controller_poll.h"
#include "sync/lease_sync.h"

namespace slurmlet::app {

// What the main thread knows after a turn.
struct Report {
  std::string node_name;
  bool registered = false;
  std::string refusal;  // "" unless another machine has our name
  node::SlurmAnswer slurm;
  node::SlurmdFacts slurmd;
  slurm::PollCounters slurmctld;
  std::uint64_t pods_rejected = 0;
  std::uint64_t pods_finished = 0;
  std::uint64_t pods_waiting = 0;
  std::uint64_t node_writes = 0;
  std::uint64_t events_dropped = 0;
};

podapi::Snapshot make_snapshot(const Report& report, const sync::LeaseStatus& lease,
                               const kube::RequestCounter& requests, Now now,
                               std::chrono::seconds lease_duration);

}  // namespace slurmlet::app
