#pragma once

// What the threads of the daemon share: everything here is thread-safe but what is the main
// thread's.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/delay.h"
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
  // The main thread's, up to `report`: whether the Lease of the life before goes on, and where the
  // watch of the Node stood at its end.
  bool is_reload = false;
  std::string watch_from = {};
  // Where the node stands in its site, as the life before knew it: the reload of a whole site is
  // spread before slurm.conf has been read again.
  SitePlace former_site{};
  std::string reload_waits = {};  // Reload::waits()
  StateSaver saver = {};
  // The last that was to be saved: a file that hangs may not have it yet.
  std::optional<std::pair<EndScope, std::optional<node::NodeEnd>>> end = {};
  Published<status::Report> report = {};
  TurnGuards turns = {};
};

}  // namespace slurmlet::daemon
