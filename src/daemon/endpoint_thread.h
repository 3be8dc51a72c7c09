#pragma once

// The thread that answers others: the kubelet API over TLS on endpoint.port, and /healthz, /readyz
// and /status on 127.0.0.1. It reviews its callers' tokens at the API server over a connection of
// its own, so that neither the lease nor the Node waits for an unauthenticated client. Starts with
// start(), ends with destruction. One owner.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/settings.h"
#include "credentials/serving_certificate.h"
#include "daemon/shared.h"
#include "host/usage.h"
#include "http/client.h"
#include "kube/review_api.h"
#include "podapi/gate.h"
#include "podapi/kubelet_routes.h"
#include "podapi/server.h"

namespace slurmlet::daemon {

// The listener of /healthz and /readyz. `sockets`: what the service manager handed over.
podapi::ServerOptions health_server_options(const config::Settings& settings,
                                            const std::vector<int>& sockets);
// Opens it; nothing where it is not wanted. A port that is taken is tried again.
std::unique_ptr<podapi::Server> start_server(podapi::ServerOptions options,
                                             podapi::RequestHandler& handler, const char* name);

class EndpointThread {
 public:
  EndpointThread(const config::Settings& settings, std::string node_name,
                 std::unique_ptr<http::Client> client,
                 const credentials::ServingCertificate& serving, Shared& shared);
  ~EndpointThread();
  EndpointThread(const EndpointThread&) = delete;
  EndpointThread& operator=(const EndpointThread&) = delete;

  // If the port is taken the node warns and goes on: better than no node.
  void start();
  // Port of the kubelet API, also while another program has it; 0 if it is not to be served.
  int kubelet_port() const { return kubelet_ ? kubelet_->port() : 0; }

 private:
  void warn_of_unused_sockets() const;
  void run();
  status::Report report() const;
  podapi::Snapshot snapshot() const;
  std::string status_json() const;
  podapi::KubeletSnapshot kubelet_snapshot();

  const config::Settings& settings_;
  std::string node_name_;
  std::string config_json_;
  std::unique_ptr<http::Client> client_;
  const credentials::ServingCertificate& serving_;
  Shared& shared_;
  kube::RestReviewApi reviews_;
  podapi::Gate gate_;
  podapi::Pages health_pages_;
  std::unique_ptr<podapi::Server> kubelet_;
  std::unique_ptr<podapi::Server> health_;
  host::UsageReader usage_{host::Paths{}};
  std::atomic<bool> stopping_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace slurmlet::daemon
