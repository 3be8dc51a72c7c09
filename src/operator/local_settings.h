#pragma once

// What the operator and its commands find on their host: the API server's kubeconfig and
// slurm.conf.

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "http/client.h"

namespace slurmlet::op {

// From the kubeconfig, or without one from the pod's environment.
Result<config::Settings> api_settings(const std::string& kubeconfig);

// ClusterName of slurm.conf, in lower case. Required, so that records of another cluster are never
// used. Sets `path`, so that all commands use the same slurm.conf.
Result<std::string> cluster_name(std::string& path);

struct ApiConnection {
  credentials::ApiAccess access;
  std::unique_ptr<http::Client> client;
};
// `clock` must outlive it.
Result<ApiConnection> connect_api(const std::string& kubeconfig, const Clock& clock);
// The server of the Machines, beside `nodes`, with which it waits; nothing where it is the same
// ("").
Result<std::optional<ApiConnection>> connect_management(http::Client& nodes,
                                                        const std::string& kubeconfig,
                                                        const Clock& clock);

// Of an administrator's commands: `flag`, else KUBECONFIG, else kubeadm's.
std::string admin_kubeconfig(const std::string& flag);

}  // namespace slurmlet::op
