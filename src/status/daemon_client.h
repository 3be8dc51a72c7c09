#pragma once

// Asks the daemon that runs on this machine how it is (GET /status, daemon_status.h). Any local
// user can listen on its port while it does not, so an answer counts only where may_be_daemon()
// holds for the listening socket. One owner.

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "http/client.h"
#include "status/daemon_status.h"

namespace slurmlet::status {

// Whether the daemon may run as `uid`: root (a socket unit's sockets, too), the user that asks, and
// the owner of stateDir, which systemd makes the service's user.
bool may_be_daemon(uid_t uid, const std::string& state_dir);

class DaemonClient {
 public:
  // kInvalid when endpoint.healthzPort is 0, with the cure.
  static Result<DaemonClient> make(const config::Settings& settings);

  // kUnavailable: nobody listens; kTimeout: no answer within `timeout`; kDenied: the port is
  // held by a user that the daemon does not run as; kInvalid: somebody else answers there. Each
  // with the cure.
  Result<DaemonStatus> ask(Duration timeout = std::chrono::seconds{3});
  // Waits, doing nothing.
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
