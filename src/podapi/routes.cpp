#include "podapi/routes.h"

#include <fmt/format.h>

#include <string_view>

namespace slurmlet::podapi {
namespace {

Response report(const std::vector<Check>& checks, const std::string& node_name) {
  std::string failing;
  for (const Check& check : checks) {
    if (!check.ok) {
      failing += fmt::format("{}: {}\n", check.name, check.detail);
    }
  }
  Response response;
  response.body = "ok";
  if (!failing.empty()) {
    response.status = 503;
    response.body = fmt::format("slurmlet on {} is not ready\n{}", node_name, failing);
  }
  return response;
}

bool is_known(std::string_view path, const Snapshot& snapshot) {
  return path == "/healthz" || path == "/readyz" || (path == kStatusPath && snapshot.status_json);
}

}  // namespace

Response handle(const Request& request, const Snapshot& snapshot) {
  Response rejection;
  if (!is_known(request.path, snapshot)) {
    rejection.status = 404;
    rejection.body = fmt::format(
        "slurmlet on {} serves /healthz, /readyz and /status here; /metrics is on the kubelet "
        "port\n",
        snapshot.node_name);
    return rejection;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    rejection.status = 405;
    rejection.body = "only GET and HEAD\n";
    rejection.headers = {{"Allow", "GET, HEAD"}};
    return rejection;
  }
  if (request.path == kStatusPath) {
    Response status;
    status.content_type = "application/json";
    status.body = snapshot.status_json();
    return status;
  }
  return report(request.path == "/healthz" ? std::vector<Check>{} : snapshot.checks,
                snapshot.node_name);
}

}  // namespace slurmlet::podapi
