#include "podapi/kubelet_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "kube/status_error.h"
#include "podapi/node_usage.h"
#include "podapi/request_path.h"
#include "podapi/status_json.h"

namespace slurmlet::podapi {
namespace {

using Segments = std::vector<std::string_view>;

struct RouteRequest {
  const RequestHead& head;
  Segments rest;  // segments below the route
  const KubeletSnapshot& snapshot;
  std::string_view purpose;  // for reject()
};

Response not_found() {
  return status_response(
      {404, "NotFound", "the server could not find the requested resource on this Slurm node"});
}

Response with_json(std::string body) {
  Response response;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

Response with_metrics(const std::vector<MetricFamily>& families) {
  Response response;
  response.content_type = kMetricsContentType;
  response.body = metrics_text(families);
  return response;
}

// The kubelet writes "items": null, which not every client accepts as a list.
Response answer_pods(const RouteRequest&) {
  return with_json(R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]})");
}

// /healthz/NAME is one check; the kubelet's own names are the whole.
Response answer_health(const RouteRequest& request) {
  static constexpr std::array<std::string_view, 3> kOfTheKubelet{"ping", "log", "syncloop"};
  const Snapshot& all = request.snapshot.common;
  if (request.rest.empty()) {
    return handle({request.head.method, "/healthz"}, all);
  }
  const std::string_view name = request.rest.front();
  if (std::find(kOfTheKubelet.begin(), kOfTheKubelet.end(), name) != kOfTheKubelet.end()) {
    return handle({request.head.method, "/healthz"}, all);
  }
  Snapshot one{all.node_name, {}, {}};
  std::copy_if(all.checks.begin(), all.checks.end(), std::back_inserter(one.checks),
               [name](const Check& check) { return check.name == name; });
  return one.checks.empty() ? not_found() : handle({request.head.method, "/readyz"}, one);
}

Response answer_ready(const RouteRequest& request) {
  return handle({request.head.method, "/readyz"}, request.snapshot.common);
}

Response answer_config(const RouteRequest& request) {
  const std::string& config = request.snapshot.config_json;
  return with_json(config.empty() ? "{}" : config);
}

Response answer_metrics(const RouteRequest& request) {
  return with_metrics(request.snapshot.common.metrics);
}
Response answer_resource_metrics(const RouteRequest& request) {
  return with_metrics(resource_metrics(request.snapshot.usage));
}
Response answer_no_metrics(const RouteRequest&) { return with_metrics({}); }

Response answer_stats(const RouteRequest& request) {
  if (!request.snapshot.usage) {
    return status_response(
        {500, "InternalError", "the usage of this node could not be read from /proc"});
  }
  const auto parameters = split(request.head.query, '&');
  const bool cpu_and_memory_only = std::find(parameters.begin(), parameters.end(),
                                             "only_cpu_and_memory=true") != parameters.end();
  return with_json(stats_summary(request.snapshot.common.node_name, *request.snapshot.usage,
                                 cpu_and_memory_only));
}

// How the API server and kubectl (1.36) show a rejection, by route:
//
// containerLogs: the API server's log streamer takes the body as text whatever its type
//   (GenericHttpResponseChecker in apiserver/pkg/registry/generic/rest) and keeps it for few status
//   codes only; 400 becomes "Error from server (BadRequest): TEXT". A Status object would be
//   printed as JSON, so it is plain text.
// exec, attach, portForward: the upgrade-aware proxy passes any 4xx to its client, which
//   (kubectl by SPDY, or the API server's own translator of WebSockets) decodes a Status or takes
//   its message: "Error from server (BadRequest): TEXT" from kubectl 1.20, "… unable to upgrade
//   connection: TEXT" from 1.30 to 1.36. So a Status object.
// run, checkpoint: called directly or through the node proxy, which passes the body on: Status.
Response reject(const RouteRequest& request) {
  const std::string cluster = kube::one_line(request.snapshot.slurm_cluster);
  return rejection_response(
      normalized_path(request.head.path).value_or(""),
      {400, "BadRequest",
       fmt::format(
           "node {} belongs to {} and runs no pods: there are no containers {}. Use Slurm's "
           "tools (srun, sattach, sbatch output files) instead.",
           request.snapshot.common.node_name,
           cluster.empty() ? "a Slurm cluster" : fmt::format("Slurm cluster \"{}\"", cluster),
           request.purpose)});
}

// The kubelet's routes (pkg/kubelet/server/server.go), with the number of further segments and the
// methods. HEAD is allowed wherever GET is, except for streams.
struct Route {
  std::string_view path;
  std::size_t min_rest, max_rest;
  std::string_view methods;  // as in the Allow header
  Response (*answer)(const RouteRequest&);
  std::string_view purpose = {};
};
constexpr std::string_view kReading = "GET, HEAD";
constexpr std::array<Route, 16> kRoutes{{
    {"/pods", 0, 0, kReading, answer_pods},
    {"/runningpods", 0, 0, kReading, answer_pods},
    {"/healthz", 0, 1, kReading, answer_health},
    {"/readyz", 0, 0, kReading, answer_ready},
    {"/configz", 0, 0, kReading, answer_config},
    {"/metrics", 0, 0, kReading, answer_metrics},
    {"/metrics/resource", 0, 0, kReading, answer_resource_metrics},
    {"/metrics/cadvisor", 0, 0, kReading, answer_no_metrics},
    {"/metrics/probes", 0, 0, kReading, answer_no_metrics},
    {"/stats/summary", 0, 0, "GET, HEAD, POST", answer_stats},
    {"/containerLogs", 3, 3, "GET", reject, "to read logs from"},  // namespace/pod/container
    {"/exec", 3, 4, "GET, POST", reject, "to run commands in"},    // namespace/pod[/uid]/container
    {"/run", 3, 4, "POST", reject, "to run commands in"},          // likewise
    {"/attach", 3, 4, "GET, POST", reject, "to attach to"},        // likewise
    {"/portForward", 2, 3, "GET, POST", reject, "to forward ports to"},  // namespace/pod[/uid]
    {"/checkpoint", 3, 3, "POST", reject, "to checkpoint"},              // namespace/pod/container
}};

// The segments of `path` below the route; nothing if it does not match.
std::optional<Segments> match(const Route& route, std::string_view path) {
  if (!is_at_or_below(path, route.path)) {
    return std::nullopt;
  }
  Segments rest;
  for (const std::string_view segment : split(path.substr(route.path.size()), '/')) {
    if (!segment.empty()) {
      rest.push_back(segment);
    }
  }
  if (rest.size() < route.min_rest || rest.size() > route.max_rest) {
    return std::nullopt;
  }
  return rest;
}

bool takes(const Route& route, std::string_view method) {
  const auto methods = split(route.methods, ',');
  return std::any_of(methods.begin(), methods.end(),
                     [method](std::string_view one) { return trim(one) == method; });
}

}  // namespace

Response handle_kubelet(const RequestHead& head, const KubeletSnapshot& snapshot) {
  const auto path = normalized_path(head.path);
  if (!path) {
    return status_response({400, "BadRequest", "the path has a malformed percent-encoding"});
  }
  for (const Route& route : kRoutes) {
    auto rest = match(route, *path);
    if (!rest) {
      continue;
    }
    if (!takes(route, head.method)) {
      Response rejection = status_response(
          {405, "MethodNotAllowed",
           fmt::format("the server does not allow this method on the requested resource: use {}",
                       route.methods)});
      rejection.headers.emplace_back("Allow", route.methods);
      return rejection;
    }
    return route.answer({head, *std::move(rest), snapshot, route.purpose});
  }
  return not_found();
}

}  // namespace slurmlet::podapi
