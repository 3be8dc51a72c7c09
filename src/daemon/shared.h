#pragma once

// What the threads of the daemon share: everything here is thread-safe.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/published.h"
#include "base/turn_guard.h"
#include "config/settings.h"
#include "kube/request_counter.h"
#include "status/report.h"
#include "status/service_report.h"
#include "sync/facts_sync.h"
#include "sync/lease_link.h"
#include "tls/server_session.h"

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
  // The main thread's: whether the Lease of the life before goes on, and where the watch of the
  // Node stood at its end.
  bool is_reload = false;
  std::string watch_from = {};
  // What the life before knew of slurm.conf, by these settings: a reload beside a slurm.conf that
  // hangs goes on with it, and that of a whole site is spread.
  std::optional<std::pair<config::SlurmSettings, sync::SlurmSetup>> former_setup = {};
  Published<status::Report> report = {};
  TurnGuards turns = {};
};

}  // namespace slurmlet::daemon
