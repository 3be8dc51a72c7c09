#pragma once

// Decides which certificate requests of nodes are approved. A serving certificate proves that a
// machine is the Node, and a client certificate lets it act as the Node, so the names must come
// from Cluster API, not from the machine. Requests are never denied, only left to other approvers.
// Rules of the signers:
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/. Pure.

#include <optional>
#include <string>
#include <vector>

#include "kube/certificate_api.h"

namespace slurmlet::op {

// A Machine that is not being deleted, as in Cluster API.
struct MachineNames {
  bool hooked = false;                 // has slurmlet's hook, so it is a compute node
  bool has_node = false;               // has a nodeRef
  std::vector<std::string> addresses;  // names, its own included, and IP addresses
};

struct CertificateRuling {
  bool approve = false;
  std::string why;  // of a rejection; "" = approved, or not for the operator
  bool operator==(const CertificateRuling&) const = default;
};

// "n1" if the request is for system:node:n1, else "".
std::string requested_node(const kube::CertificateRequest& request);

// `machine`: the one with this nodeRef, or with this name and no nodeRef yet. `node_is_up` (for
// client certificates): a Node of that name is Ready or renews its Lease. `bootstrap_group`: may
// request client certificates; "" = no group.
CertificateRuling rule_certificate(const kube::CertificateRequest& request,
                                   const std::optional<MachineNames>& machine, bool node_is_up,
                                   const std::string& bootstrap_group);

}  // namespace slurmlet::op
