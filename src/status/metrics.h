#pragma once

// The daemon's Prometheus metrics for /metrics (https://prometheus.io/docs/practices/naming/), and
// its health checks. The main thread publishes a report whenever it wakes; a scrape only reads it.

#include <optional>

#include "base/clock.h"
#include "kube/request_counter.h"
#include "podapi/gate.h"
#include "podapi/routes.h"
#include "podapi/server.h"
#include "status/report.h"
#include "sync/lease_sync.h"

namespace slurmlet::status {

struct EndpointCounters {
  std::optional<podapi::ServerCounters> server, health;  // nothing: not served
  podapi::GateCounters gate;
};

podapi::Snapshot make_snapshot(const Report& report, const sync::LeaseStatus& lease,
                               const kube::RequestCounter& requests,
                               const EndpointCounters& endpoint, Now now,
                               std::chrono::seconds lease_duration);

}  // namespace slurmlet::status
