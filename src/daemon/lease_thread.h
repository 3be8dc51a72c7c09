#pragma once

// The thread that renews the lease, on a connection of its own, so that no other call can make the
// heartbeat late. Starts with construction, ends with destruction. One owner.

#include <atomic>
#include <memory>
#include <thread>

#include "daemon/shared.h"
#include "http/client.h"
#include "kube/rest_api.h"
#include "sync/lease_sync.h"

namespace slurmlet::daemon {

class LeaseThread {
 public:
  LeaseThread(std::unique_ptr<http::Client> client, sync::LeaseOptions options, Shared& shared);
  ~LeaseThread();
  LeaseThread(const LeaseThread&) = delete;
  LeaseThread& operator=(const LeaseThread&) = delete;

 private:
  void run();
  void sleep_until(SteadyTime next);

  Shared& shared_;
  std::unique_ptr<http::Client> client_;
  kube::RestLeaseApi api_;
  sync::LeaseSync sync_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace slurmlet::daemon
