#pragma once

// A reload (SIGHUP), prepared beside the life that runs: on a thread of its own the new
// configuration is read, and so are the files that the next life needs first. That life begins when
// all of them have answered; a file system that hangs costs the reload and nothing else.
//
// For the main thread.

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/side_call.h"
#include "config/settings.h"
#include "daemon/signals.h"
#include "status/service_report.h"

namespace slurmlet::daemon {

class Reload {
 public:
  // Reads the configuration anew. Runs on other threads and may outlive this object.
  using Load = std::function<Result<config::Settings>()>;

  // `service` must outlive it.
  Reload(Load load, status::ServiceReport& service) : load_(std::move(load)), service_(service) {}

  // What a pending signal asks for; kReload once the next configuration is there. What is wrong
  // with it is logged, and the life goes on.
  std::optional<Outcome> outcome(Signals& signals, Now now);
  // Readable when the configuration has been read; -1 where none is being read.
  int fd() const { return reading_.wake_fd(); }
  // When it is time to say that a file does not answer.
  SteadyTime due(SteadyTime now) const { return reading_.late_at(now); }
  // The file that a reload waits for, with the time; "" where none does.
  const std::string& waits_for() const { return waits_for_; }

  // The next configuration, once; after kReload.
  config::Settings take();

 private:
  void begin(Now now);

  Load load_;
  status::ServiceReport& service_;
  SideCall<Result<config::Settings>> reading_;
  std::string waits_for_;
  std::optional<config::Settings> next_;
};

}  // namespace slurmlet::daemon
