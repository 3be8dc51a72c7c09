#pragma once

// What the operator serves: /healthz, /readyz and /metrics, in plain HTTP, to whoever can reach the
// address. Node names and reasons of Slurm are not in it. Pure.

#include <string>
#include <vector>

#include "operator/operator_loop.h"
#include "podapi/request_head.h"
#include "podapi/routes.h"

namespace slurmlet::op {

std::vector<podapi::MetricFamily> operator_metrics(const OperatorStatus& status);
std::vector<podapi::Check> operator_checks(const OperatorStatus& status);

// `name`: of this host.
podapi::Response operator_page(const podapi::RequestHead& head, const std::string& name,
                               const OperatorStatus& status);

}  // namespace slurmlet::op
