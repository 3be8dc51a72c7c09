#pragma once

// Reports the daemon to the service manager: READY=1 once the configuration is valid, the status
// line, the watchdog's pings and STOPPING=1. Thread-safe: each loop reports at the start of a step
// and before it sleeps, and sends whatever is due then.
//
// To spare the manager, changes of the line are sent at once at most three times a minute, and
// otherwise with the next ping.

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "status/report.h"
#include "status/service_manager.h"
#include "status/watchdog.h"
#include "sync/lease_link.h"

namespace slurmlet::status {

class ServiceReport {
 public:
  // `watchdog`: WatchdogSec; nothing = off.
  // `sockets`: from its socket unit.
  ServiceReport(Notifier notifier, std::optional<Duration> watchdog, std::vector<int> sockets = {});
  const std::vector<int>& sockets() const { return sockets_; }

  // Sends READY=1 once the loops start, again with the next datagram if that fails.
  void ready(Now now);
  // READY=1, this status and a ping, while there is nothing to do yet. Call it every 30 s.
  void waiting(const std::string& text);
  bool is_heard() const { return notifier_.is_heard(); }
  void stopping();
  // The daemon ends; the first line of `reason` becomes the status.
  void failing(const std::string& reason);

  // As Watchdog; sends a due ping, since the next step may take long.
  void works(Loop loop, Now now);
  void ended(Loop loop);
  // The loop goes to sleep; sends what is due.
  void sleeps(Loop loop, Now now, SteadyTime until, const Report& report,
              const sync::LeaseStatus& lease);

 private:
  // Holds the mutex; logs after its release.
  class Lock {
   public:
    explicit Lock(ServiceReport& report) : report_(report) { report_.mutex_.lock(); }
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    ServiceReport& report_;
  };

  bool may_send_change(SteadyTime now);
  // Returns whether the manager accepted it.
  bool send(const std::string& lines);

  mutable std::mutex mutex_;
  Notifier notifier_;
  const std::vector<int> sockets_;
  bool watched_;
  Watchdog watchdog_;
  bool ready_ = false;
  bool owes_ready_ = true;
  bool send_failed_ = false;
  std::string to_log_;              // when the lock is released
  std::string sent_text_;           // state_text() last sent
  std::deque<SteadyTime> changes_;  // sent in the last minute
};

}  // namespace slurmlet::status
