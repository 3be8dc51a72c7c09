#pragma once

// What the threads of the daemon share: everything here is thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "app/report.h"
#include "app/service_report.h"
#include "base/clock.h"
#include "base/published.h"
#include "kube/request_counter.h"
#include "sync/lease_link.h"
#include "tls/server_session.h"

namespace slurmlet::app {

struct Shared {
  ServiceReport& service;
  SystemClock clock = {};
  kube::RequestCounter requests = {};
  sync::LeaseLink lease = {};
  Published<Report> report = {};
};

}  // namespace slurmlet::app
