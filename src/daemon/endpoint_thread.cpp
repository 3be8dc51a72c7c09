#include "daemon/endpoint_thread.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "config/load.h"
#include "status/daemon_status.h"
#include "status/metrics.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;

podapi::ServerOptions kubelet_options(const config::Settings& settings,
                                      const credentials::ServingCertificate& serving,
                                      const std::vector<int>& sockets) {
  podapi::ServerOptions options;
  options.inherited = sockets;
  if (!settings.endpoint.address.empty()) {
    options.address = settings.endpoint.address;
  }
  options.port = settings.endpoint.port;
  options.port_flag = "--port";
  options.identity = [&serving] { return serving.identity(); };
  return options;
}

}  // namespace

podapi::ServerOptions health_server_options(const config::Settings& settings,
                                            const std::vector<int>& sockets) {
  podapi::ServerOptions options;
  options.inherited = sockets;
  options.address = "127.0.0.1";
  options.port = settings.endpoint.healthz_port;
  options.port_flag = "--healthz-port";
  options.max_connections = 8;
  options.max_per_address = 8;
  options.head_timeout = seconds{5};
  options.idle_timeout = seconds{5};
  return options;
}

std::unique_ptr<podapi::Server> start_server(podapi::ServerOptions options,
                                             podapi::RequestHandler& handler, const char* name) {
  if (options.port == 0) {
    return nullptr;
  }
  auto server = std::make_unique<podapi::Server>(std::move(options), handler);
  const Status started = server->start();
  if (started) {
    return server;
  }
  const bool may_pass = started.error().code != Code::kInvalid;
  log::warning(std::string{"no "} + name + " endpoint: " + started.error().message +
               (may_pass ? "; retrying until it listens" : ""));
  return may_pass ? std::move(server) : nullptr;
}

EndpointThread::EndpointThread(const config::Settings& settings, std::string node_name,
                               std::unique_ptr<http::Client> client,
                               const credentials::ServingCertificate& serving, Shared& shared)
    : settings_(settings),
      node_name_(std::move(node_name)),
      config_json_(config::effective_settings_json(settings)),
      client_(std::move(client)),
      serving_(serving),
      shared_(shared),
      reviews_(*client_, {&shared.requests, {}}),
      gate_(reviews_, [this](const auto& head) { return handle_kubelet(head, kubelet_snapshot()); },
            {.node_name = node_name_}),
      health_pages_([this](const auto& head) {
        podapi::Snapshot all = snapshot();
        all.status_json = [this] { return status_json(); };
        return handle({head.method, head.path}, all);
      }) {}

EndpointThread::~EndpointThread() {
  stopping_ = true;
  client_->interrupt();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void EndpointThread::start() {
  const auto& sockets = shared_.service.sockets();
  warn_of_unused_sockets();
  health_ = start_server(health_server_options(settings_, sockets), health_pages_, "health");
  if (serving_.identity()) {  // else it was said by the one who could not make one
    kubelet_ = start_server(kubelet_options(settings_, serving_, sockets), gate_, "kubelet");
  }
  if (health_ || kubelet_) {
    thread_ = std::thread{[this] { run(); }};
  }
}

// Clients of such a socket would wait for ever.
void EndpointThread::warn_of_unused_sockets() const {
  const auto& sockets = shared_.service.sockets();
  const auto kubelet = kubelet_options(settings_, serving_, sockets);
  const auto health = health_server_options(settings_, sockets);
  for (const int socket : sockets) {
    if (!podapi::is_for(socket, kubelet) && !podapi::is_for(socket, health)) {
      log::warning("slurmlet.socket listens on " + podapi::socket_name(socket) +
                   ", which is neither endpoint.address and endpoint.port nor 127.0.0.1 and "
                   "endpoint.healthzPort: connections there get no answer. Give the unit the same "
                   "addresses (systemctl edit slurmlet.socket: ListenStream=), or disable it");
    }
  }
}

void EndpointThread::run() {
  std::vector<podapi::Server*> servers;
  std::vector<int> fds;
  for (auto* const server : {kubelet_.get(), health_.get()}) {
    if (server != nullptr) {
      servers.push_back(server);
      fds.push_back(server->fd());
    }
  }
  while (!stopping_) {
    SteadyTime next = kNever;
    for (auto* const server : servers) {
      next = std::min(next, server->step(shared_.clock.now()));
    }
    if (!stopping_) {
      (void)client_->wait(next, fds);
    }
  }
}

// Before the first turn of the main thread only the name is known.
status::Report EndpointThread::report() const {
  const auto published = shared_.report.get();
  status::Report out = published ? *published : status::Report{};
  out.node_name = node_name_;
  return out;
}

podapi::Snapshot EndpointThread::snapshot() const {
  const auto lease = shared_.lease.status.get();
  status::EndpointCounters endpoint;
  if (kubelet_) {
    endpoint.server = kubelet_->counters();
  }
  if (health_) {
    endpoint.health = health_->counters();
  }
  endpoint.gate = gate_.counters();
  return status::make_snapshot(
      report(), lease ? *lease : sync::LeaseStatus{}, shared_.requests, endpoint,
      shared_.clock.now(),
      std::chrono::duration_cast<seconds>(settings_.kubernetes.lease_duration));
}

std::string EndpointThread::status_json() const {
  const auto lease = shared_.lease.status.get();
  std::optional<status::EndpointState> endpoint;
  if (settings_.endpoint.port != 0) {
    endpoint = {kubelet_ ? kubelet_->port() : settings_.endpoint.port,
                kubelet_ && kubelet_->counters().listening};
  }
  return status::daemon_status_json({report(), lease ? *lease : sync::LeaseStatus{},
                                     settings_.kubernetes.lease_duration, status::process_start(),
                                     shared_.clock.now(), endpoint});
}

podapi::KubeletSnapshot EndpointThread::kubelet_snapshot() {
  podapi::KubeletSnapshot out;
  out.common = snapshot();
  out.slurm_cluster = report().facts.slurm_conf.cluster_name;
  out.config_json = config_json_;
  out.usage = usage_.read(shared_.clock.now());
  return out;
}

}  // namespace slurmlet::daemon
