#pragma once

// Answers authorized requests on the kubelet's port: a pure function of the request and a snapshot.
// Errors are the API's Status
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/) where clients
// read it, and are worded so that kubectl logs, exec, attach, port-forward, cp and debug print one
// clear sentence.
//
//   /pods /runningpods            empty v1.PodList
//   /healthz /readyz              as on the health port
//   /configz                      the effective settings, no secrets
//   /stats/summary                stats.k8s.io v1alpha1 Summary of the node, without pods
//   /metrics                      Prometheus
//   /metrics/resource             what metrics-server reads
//   /metrics/cadvisor, /probes    no series: there are no containers
//   /containerLogs /exec /attach /portForward /run /checkpoint   rejected: no pods here

#include <optional>
#include <string>

#include "node/usage.h"
#include "podapi/request_head.h"
#include "podapi/routes.h"

namespace slurmlet::podapi {

struct KubeletSnapshot {
  Snapshot common;                   // node name, checks, metrics
  std::string slurm_cluster;         // "" = not known
  std::string config_json;           // effective settings
  std::optional<node::Usage> usage;  // nothing if /proc could not be read
};

Response handle_kubelet(const RequestHead& head, const KubeletSnapshot& snapshot);

}  // namespace slurmlet::podapi
