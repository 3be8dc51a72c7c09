#pragma once

// `slurmlet-operator check`: verifies once that the operator has all it needs; changes nothing.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "kube/review_api.h"
#include "operator/options.h"

namespace slurmlet::op {

// The operator's own rights, granted by deploy/operator/rbac.yaml. Pure.
std::vector<kube::OwnRight> needed_rights(const Options& options);

// Read as the operator itself reads them.
struct CheckSettings {
  Result<config::Settings> api;
  std::optional<Result<config::Settings>> management;  // if Machines are on another server
  Result<std::string> cluster;                         // the name in slurm.conf
  std::vector<std::string> files;                      // which the operator must be able to read
};

// Prints its findings and returns the exit code.
int run_check(const Options& options, const CheckSettings& settings);

}  // namespace slurmlet::op
