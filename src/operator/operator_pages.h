#pragma once

// What the operator serves: /healthz, /readyz and /metrics, in plain HTTP, to whoever can reach the
// address. Node names and reasons of Slurm are not in it. Not thread-safe.

#include <functional>

#include "operator/operator_loop.h"
#include "podapi/server.h"

namespace slurmlet::op {

// Pure.
std::vector<podapi::MetricFamily> operator_metrics(const OperatorStatus& status);
std::vector<podapi::Check> operator_checks(const OperatorStatus& status);

class OperatorPages final : public podapi::RequestHandler {
 public:
  // `name`: of this host.
  OperatorPages(std::string name, std::function<OperatorStatus()> status)
      : name_(std::move(name)), status_(std::move(status)) {}
  std::optional<podapi::Response> begin(podapi::RequestId id, const podapi::Caller& caller,
                                        const podapi::RequestHead& head, Now now) override;

 private:
  std::string name_;
  std::function<OperatorStatus()> status_;
};

}  // namespace slurmlet::op
