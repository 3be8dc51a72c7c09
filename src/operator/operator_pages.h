#pragma once

// The operator's /healthz, /readyz and /metrics: plain HTTP without authentication, so they have no
// Node names or Slurm Reasons. Pure.

#include <string>
#include <vector>

#include "operator/operator_loop.h"
#include "podapi/request_head.h"
#include "podapi/routes.h"

namespace slurmlet::op {

std::vector<podapi::MetricFamily> operator_metrics(const OperatorStatus& status);
std::vector<podapi::Check> operator_checks(const OperatorStatus& status);

// `name`: this host's.
podapi::Response operator_page(const podapi::RequestHead& head, const std::string& name,
                               const OperatorStatus& status);

}  // namespace slurmlet::op
