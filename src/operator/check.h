#pragma once

// `slurmlet-operator check`: is there all that the operator needs? Looks once, changes nothing.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "kube/review_api.h"
#include "operator/options.h"

namespace slurmlet::op {

// What the operator calls; deploy/operator/rbac.yaml grants it. Pure.
std::vector<kube::OwnRight> needed_rights(const Options& options);
// Of that, where the Machines are.
std::vector<kube::OwnRight> needed_machine_rights(const Options& options);

// How the operator itself would have them.
struct CheckSettings {
  Result<config::Settings> api;
  std::optional<Result<config::Settings>> management;  // of another server for the Machines
  Result<std::string> cluster;                         // the name in slurm.conf
  std::vector<std::string> files;                      // that it must be able to read
};

// Prints what it finds; the exit code.
int run_check(const Options& options, const CheckSettings& settings);

}  // namespace slurmlet::op
