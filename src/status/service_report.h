#pragma once

// What the service manager hears of the daemon: READY=1 when the configuration is good, the status
// line, the watchdog's pings and STOPPING=1. Thread-safe: the loops report here when a
// turn begins and before they sleep, and whichever of them has something to say at that moment says
// it. Nothing is said where nobody listens.
//
// The manager is spared: a ping carries the line as it is then; news by itself is told at once, but
// not more than three times a minute.

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
  // `watchdog`: the manager's interval; nothing = it does not watch.
  // `sockets`: what its socket unit handed over.
  ServiceReport(Notifier notifier, std::optional<Duration> watchdog, std::vector<int> sockets = {});
  const std::vector<int>& sockets() const { return sockets_; }

  // The configuration is good and the loops begin: READY=1, once. Said again
  // with what is said next, should the manager not take it.
  void ready(Now now);
  void stopping();
  // The daemon ends for this reason; its first line becomes the status.
  void failing(const std::string& reason);

  // As Watchdog. A ping that is due goes out: the turn that begins may take long.
  void works(Loop loop, Now now);
  void ended(Loop loop);
  // The loop goes to sleep; says what there is to say.
  void sleeps(Loop loop, Now now, SteadyTime until, const Report& report,
              const sync::LeaseStatus& lease);

 private:
  // Holds the mutex; what there is to log is logged when it is free again.
  class Turn {
   public:
    explicit Turn(ServiceReport& report) : report_(report) { report_.mutex_.lock(); }
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    ServiceReport& report_;
  };

  bool may_tell_news(SteadyTime now);
  // Whether it was taken.
  bool send(const std::string& lines);

  mutable std::mutex mutex_;
  Notifier notifier_;
  const std::vector<int> sockets_;
  bool watched_;
  Watchdog watchdog_;
  bool ready_ = false;
  bool owes_ready_ = true;
  bool unheard_ = false;         // the last message was not taken
  std::string to_log_;           // by the end of the turn
  std::string told_;             // state_words() of the last line
  std::deque<SteadyTime> news_;  // when news was told, of the last minute
};

}  // namespace slurmlet::status
