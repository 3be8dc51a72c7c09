#pragma once

// What the threads of the daemon share: everything here is thread-safe except the main
// thread's.

#include "base/clock.h"
#include "base/published.h"
#include "daemon/state_dir.h"
#include "kube/request_counter.h"
#include "status/report.h"
#include "status/service_report.h"
#include "sync/lease_link.h"

namespace slurmlet::daemon {

struct Shared {
  status::ServiceReport& service;
  const Clock& clock;
  kube::RequestCounter requests = {};
  sync::LeaseLink lease = {};
  StateSaver saver = {};  // the main thread's
  Published<status::Report> report = {};
};

}  // namespace slurmlet::daemon
