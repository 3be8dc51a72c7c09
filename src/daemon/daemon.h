#pragma once

// The running daemon: connections, threads, loops, signals. Everything here is wiring; what is
// decided is decided in node/, when it is done is decided in sync/ and slurm/sources/.

#include <memory>

#include "base/result.h"
#include "config/settings.h"
#include "daemon/reload.h"
#include "daemon/signals.h"
#include "status/service_report.h"

namespace slurmlet::daemon {

// One life with each configuration. Across them the lease goes on: the thread of the last life
// renews it until that of the next, which knows the Node from it, takes over.
class Daemon {
 public:
  // All must outlive it; `service` hears how it goes.
  Daemon(Signals& signals, Reload& reload, status::ServiceReport& service);
  ~Daemon();

  // Runs until a signal ends it; after kReload, `reload` has the next configuration. Returns an
  // error only when it cannot begin (bad credential, no node name, port taken); an API server that
  // is away is waited for.
  Result<Outcome> run(const config::Settings& settings);
  // Whether it has begun: a later error is not one of the configuration.
  bool began() const;

  struct Lasting;

 private:
  Signals& signals_;
  Reload& reload_;
  std::unique_ptr<Lasting> lasting_;
};

}  // namespace slurmlet::daemon
