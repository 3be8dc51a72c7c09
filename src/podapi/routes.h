#pragma once

// What slurmlet answers on its health port, as a pure function of the request and a snapshot:
//
//   GET /healthz  200 "ok": nothing of what it knows would be cured by a restart
//   GET /readyz   the same, or 503 with the checks that fail, e.g. whether the lease is renewed
//   GET /status   200 with what the daemon knows of itself, as JSON, for `slurmlet status`
//
// Nothing else: /metrics tells of jobs and users' doings and is served on the kubelet port, to
// those who may ask (kubelet_routes.h).
//
// HEAD is answered like GET (the server leaves the body out). Anything else is 404 or 405.

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
  std::string detail;  // why not, for people
};

struct Snapshot {
  std::string node_name;
  std::vector<Check> checks;
  std::vector<MetricFamily> metrics;
  // Body of /status, made when it is asked for; without it that is not served.
  std::function<std::string()> status_json = {};
};

Response handle(const Request& request, const Snapshot& snapshot);

}  // namespace slurmlet::podapi
