#pragma once

// Reads a kubeconfig, YAML or JSON
// (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/), as far as a node daemon with a
// credential of its own needs it: current-context, clusters, users and contexts; CA, client
// certificate and key inline or as files, token, tokenFile, tls-server-name, proxy-url. Relative
// paths are relative to the kubeconfig's folder, as client-go has it.
//
// Rejected with file, line and fix rather than skipped, because skipping would connect
// otherwise than the file says: insecure-skip-tls-verify, exec plugins, auth providers, user name
// and password, impersonation. Keys that change nothing for us (extensions, preferences) are passed
// over. Errors never quote a secret.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/cluster_access.h"

namespace slurmlet::kube {

Result<ClusterAccess> load_kubeconfig(const std::filesystem::path& path);

// The same from text; `path` names the file in errors and places relative paths.
Result<ClusterAccess> parse_kubeconfig(std::string_view text, const std::filesystem::path& path);

// The kubeconfig of a node that bootstrapped: server and CA inline, client certificate and key by
// the path of the store's current file, as the kubelet writes it. `access` gives server, CA (its
// PEM text), tls-server-name and proxy; its credential is not used.
std::string node_kubeconfig_text(const ClusterAccess& access, const std::string& node_name,
                                 const std::filesystem::path& certificate_and_key);

// The kubeconfig of a service account: the same of `access`, and a token inline. `first_line` is a
// comment without its "# ".
std::string token_kubeconfig_text(const ClusterAccess& access, const std::string& token,
                                  const std::string& first_line);

}  // namespace slurmlet::kube
