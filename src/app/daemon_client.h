#pragma once

// Asks the daemon that runs on this machine how it is (GET /status, daemon_status.h). One owner.

#include <memory>
#include <string>

#include "app/daemon_status.h"
#include "base/result.h"
#include "config/settings.h"
#include "http/client.h"

namespace slurmlet::app {

class DaemonClient {
 public:
  // kInvalid when endpoint.healthzPort is 0, with the cure.
  static Result<DaemonClient> make(const config::Settings& settings);

  // kUnavailable: nobody listens; kTimeout: no answer within `timeout`; kInvalid: somebody else
  // answers there. Each with the cure.
  Result<DaemonStatus> ask(Duration timeout = std::chrono::seconds{3});
  // Waits, doing nothing.
  void pause(Duration how_long);

 private:
  DaemonClient(std::unique_ptr<http::Client> client, std::string address)
      : client_(std::move(client)), address_(std::move(address)) {}
  std::unique_ptr<http::Client> client_;
  std::string address_;
};

}  // namespace slurmlet::app
