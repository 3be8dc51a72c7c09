#pragma once

// Writes the kubeconfig of a node that bootstrapped: server and CA inline, client certificate and
// key by the path of the store's current file, as the kubelet writes it.

#include <filesystem>
#include <string>

#include "kube/cluster_access.h"

namespace slurmlet::kube {

// `access` gives server, CA (its PEM text), tls-server-name and proxy; its credential is not used.
std::string node_kubeconfig_text(const ClusterAccess& access, const std::string& node_name,
                                 const std::filesystem::path& certificate_and_key);

}  // namespace slurmlet::kube
