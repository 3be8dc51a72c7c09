#pragma once

// What signals ask for. A reload (SIGHUP) is prepared while the old configuration stays in use: on
// a thread of its own the new one is read, and so are slurm.conf, the state directory and Metal3's
// metadata, which the next life needs first. That life begins when all of them have answered; a
// file system that hangs delays the reload and nothing else.
//
// For the main thread.

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/side_call.h"
#include "config/settings.h"
#include "daemon/signals.h"
#include "status/service_report.h"

namespace slurmlet::daemon {

// How a life ends.
enum class Outcome {
  kStopped,  // SIGTERM or SIGINT
  kReload,   // SIGHUP, and the new configuration is there
};

class Reload {
 public:
  // Reads the configuration anew. Runs on other threads and may outlive this object.
  using Load = std::function<Result<config::Settings>()>;

  // `service` must outlive it.
  Reload(Load load, status::ServiceReport& service) : load_(std::move(load)), service_(service) {}

  // Takes a pending signal, and the new configuration once it has been read. What is wrong with
  // that is logged, and the life goes on.
  std::optional<Outcome> outcome(Signals& signals, Now now);
  // Readable when the configuration has been read; -1 where none is being read.
  int fd() const { return reading_.wake_fd(); }
  // When it is time to say that a file does not answer.
  SteadyTime due(SteadyTime now) const {
    return reading_.late(now) && waits_.empty() ? now : reading_.late_at(now);
  }
  // "/shared/slurm.conf did not answer for 2 s"; "" where no reload waits.
  const std::string& waits() const { return waits_; }

  // The next configuration, once; after kReload.
  config::Settings take();

 private:
  bool begin(Now now);
  std::optional<Outcome> take_reading(Result<config::Settings> read, Now now);

  Load load_;
  status::ServiceReport& service_;
  SideCall<Result<config::Settings>> reading_;
  std::string waits_;
  bool is_second_ = false;  // the reading under way, for the same signal
  std::optional<config::Settings> next_;
};

}  // namespace slurmlet::daemon
