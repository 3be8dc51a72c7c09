#include "daemon/bootstrap_loop.h"

#include <signal.h>

#include <algorithm>

#include "credentials/bootstrap.h"
#include "daemon/endpoint_thread.h"
#include "podapi/server.h"
#include "status/daemon_status.h"

namespace slurmlet::daemon {
namespace {

// Without a certificate nothing else wakes up often enough for the watchdog.
constexpr Duration kLongestSleep = std::chrono::seconds{30};

// For people, while there is nothing else to report.
status::Report report(const credentials::Bootstrap& bootstrap, const std::string& node_name) {
  status::Report out;
  out.node_name = node_name;
  out.bootstrapping = true;
  out.api_server = bootstrap.server();
  out.api_error = bootstrap.problem();
  out.certificates.client_requests = bootstrap.request();
  return out;
}

podapi::Snapshot snapshot(const status::Report& report) {
  podapi::Snapshot out;
  out.node_name = report.node_name;
  out.checks.push_back({"credential", false, status::credential_problem(report)});
  return out;
}

}  // namespace

bool run_bootstrap(const config::Settings& settings, const std::string& node_name, Signals& signals,
                   Shared& shared) {
  const Clock& clock = shared.clock;
  status::ServiceReport& service = shared.service;
  credentials::Bootstrap bootstrap{settings, node_name, clock, shared.requests, signals.fd()};
  podapi::Pages pages{[&](const auto& head) {
    podapi::Snapshot all = snapshot(report(bootstrap, node_name));
    all.status_json = [&] {
      return status::daemon_status_json({report(bootstrap, node_name), sync::LeaseStatus{},
                                         settings.kubernetes.lease_duration,
                                         status::process_start(), clock.now()});
    };
    return handle({head.method, head.path}, all);
  }};
  const auto health =
      start_server(health_server_options(settings, service.sockets()), pages, "health");
  service.ready(clock.now());
  while (true) {
    const Now now = clock.now();
    service.works(status::Loop::kMain, now);
    SteadyTime next = bootstrap.step(now);
    if (health) {
      next = std::min(next, health->step(clock.now()));
    }
    if (bootstrap.done()) {
      return true;
    }
    next = std::min({next, clock.now().steady + kLongestSleep});
    shared.report.set(report(bootstrap, node_name));
    service.sleeps(status::Loop::kMain, clock.now(), next, *shared.report.get(), {});
    bootstrap.wait(next, {signals.fd(), health ? health->fd() : -1});
    if (must_stop(signals, service)) {
      return false;
    }
  }
}

bool must_stop(Signals& signals, status::ServiceReport& service) {
  const auto number = signals.take_stop();
  if (number) {
    service.stopping();
    log::info(*number == SIGTERM ? "SIGTERM: stopping" : "SIGINT: stopping");
  }
  return number.has_value();
}

}  // namespace slurmlet::daemon
