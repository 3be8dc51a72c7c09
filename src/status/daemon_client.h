#pragma once

// Queries the daemon on this machine (GET /status, daemon_status.h). Any local user can take its
// port while it does not run, so may_be_daemon() must hold for the listening socket. One owner.

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "http/client.h"
#include "status/daemon_status.h"

namespace slurmlet::status {

// Whether the daemon may run as `uid`: root (also for a socket unit), our own uid, or the owner of
// stateDir, which systemd sets to the service's user.
bool may_be_daemon(uid_t uid, const std::string& state_dir);

class DaemonClient {
 public:
  // kInvalid, with the fix, if endpoint.healthzPort is 0.
  static Result<DaemonClient> make(const config::Settings& settings);

  // kUnavailable: nobody listens; kTimeout: no answer within `timeout`; kDenied: another user has
  // the port; kInvalid: the answer is not slurmlet's. Each with the fix.
  Result<DaemonStatus> query(Duration timeout = std::chrono::seconds{3});
  void pause(Duration how_long);

 private:
  DaemonClient(std::unique_ptr<http::Client> client, int port, std::string state_dir);
  Error nobody() const;
  Status check_listener() const;

  std::unique_ptr<http::Client> client_;
  int port_;
  std::string address_;
  std::string state_dir_;
};

}  // namespace slurmlet::status
