#pragma once

// `slurmlet-operator init`: with an administrator's kubeconfig, all that the service needs in the
// cluster and on this host. Applies the manifests of deploy/ (manifests.h), makes a token of the
// service account, writes the service's kubeconfig, enables and restarts the service. Needs root;
// another run changes nothing but the token.
//
// The token is that of a Secret, since a running service need not renew it: it holds until the
// Secret is deleted, by the next init on this host, by uninstall or by an administrator.

#include <string>

#include "operator/options.h"

namespace slurmlet::op {

inline constexpr const char* kService = "slurmlet-operator.service";
inline constexpr const char* kAccount = "slurmlet-operator";
inline constexpr const char* kAccountNamespace = "kube-system";
// Annotation of a token's Secret: the kubeconfig that has it, as HOST:PATH.
inline constexpr const char* kTokenPlace = "slurmlet.io/kubeconfig";
// Of the file, by which uninstall knows it.
inline constexpr const char* kKubeconfigHead = "Written by slurmlet-operator init.";

// Whether init has written the file.
bool is_written_by_init(const std::string& kubeconfig);
// Where the service's kubeconfig is written.
std::string own_kubeconfig(const Options& options);
// Of kTokenPlace.
std::string token_place(const Options& options);

// Exit code: 0; 1 it could not be done; 2 bad configuration.
int run_init(const CommandLine& command);

}  // namespace slurmlet::op
