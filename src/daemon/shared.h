#pragma once

// What the threads of the daemon share: everything here is thread-safe but what is the main
// thread's.

#include "base/clock.h"
#include "base/published.h"
#include "base/turn_guard.h"
#include "daemon/state_dir.h"
#include "kube/request_counter.h"
#include "status/report.h"
#include "status/service_report.h"
#include "sync/lease_link.h"

namespace slurmlet::daemon {

// Each belongs to its thread.
struct TurnGuards {
  TurnGuard main{"main", 20};
  TurnGuard lease{"lease", 20};
  TurnGuard endpoint{"endpoint", 200};  // a request takes several turns
};

struct Shared {
  status::ServiceReport& service;
  const Clock& clock;
  kube::RequestCounter requests = {};
  sync::LeaseLink lease = {};
  StateSaver saver = {};  // the main thread's
  Published<status::Report> report = {};
  TurnGuards turns = {};
};

}  // namespace slurmlet::daemon
