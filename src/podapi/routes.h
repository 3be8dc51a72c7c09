#pragma once

// The health port, as a pure function of the request and a snapshot:
//
//   GET /healthz  200 "ok", as long as no restart would help
//   GET /readyz   200 "ok", or 503 with the failing checks, e.g. whether the lease is renewed
//   GET /status   200 with the daemon's state as JSON, for `slurmlet status`
//
// /metrics reveals users' activity, so it requires authorization (kubelet_routes.h).
//
// HEAD is answered like GET (the server omits the body), everything else with 404 or 405.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "podapi/metrics_text.h"

namespace slurmlet::podapi {

inline constexpr char kStatusPath[] = "/status";

struct Request {
  std::string method;
  std::string path;  // without the query
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // beyond Content-Type and -Length
};

struct Check {
  std::string name;
  bool ok = true;
  std::string detail;  // the problem, for people
};

struct Snapshot {
  std::string node_name;
  std::vector<Check> checks;
  std::vector<MetricFamily> metrics;
  // Makes the body of /status; without it /status is 404.
  std::function<std::string()> status_json = {};
};

Response handle(const Request& request, const Snapshot& snapshot);

}  // namespace slurmlet::podapi
