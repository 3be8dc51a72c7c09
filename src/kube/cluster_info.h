#pragma once

// Finds the cluster's CA with a bootstrap token and a hash of the CA's public key, as `kubeadm
// join` does (https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-join/, "token-based
// discovery with CA pinning"): the ConfigMap kube-public/cluster-info is read from a server that is
// not trusted yet; the token must have signed it, and a CA in it must have one of the hashes.

#include <string>
#include <vector>

#include "base/result.h"
#include "http/client.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// Prints a token that may request certificates, and whose requests no kubeadm cluster approves
// unseen (deploy/rbac/node-bootstrapper.yaml).
inline constexpr char kNewToken[] = "kubeadm token create --groups system:bootstrappers:slurmlet";

// "abcdef.0123456789abcdef"
// (https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/).
struct BootstrapToken {
  std::string id, secret;
};
// kInvalid; does not quote the token.
Result<BootstrapToken> parse_bootstrap_token(const std::string& text);

// The CA bundle, PEM. `untrusting` must not verify the server and must carry no credential.
// `pins` are "sha256:<hex>"; any other is that of no CA. kDenied when nothing in the answer can be
// believed (with the reason and the fix), else as the call. Blocks like Client::call.
Result<std::string> discover_cluster_ca(http::Client& untrusting, const BootstrapToken& token,
                                        const std::vector<std::string>& pins,
                                        const CallOptions& options);

}  // namespace slurmlet::kube
