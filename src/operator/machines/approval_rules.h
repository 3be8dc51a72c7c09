#pragma once

// Which certificate requests of nodes are approved. By a serving certificate a machine shows that
// it is the Node, by a client certificate it acts as the Node: a request is approved only where
// Cluster API, and not the machine itself, says that the names are this machine's. Nothing is ever
// denied: what is not approved is left to others. Rules of the signers:
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/. Pure.

#include <optional>
#include <string>
#include <vector>

#include "kube/certificate_api.h"

namespace slurmlet::op {

// A Machine that lives, as Cluster API has it.
struct MachineNames {
  bool hooked = false;                 // slurmlet's hook is on it: it is a compute node
  bool has_node = false;               // a nodeRef
  std::vector<std::string> addresses;  // names and IP addresses, its own name too
};

struct CertificateRuling {
  bool approve = false;
  std::string why;  // that it is left; "" = it is none of the operator's business, or approved
  bool operator==(const CertificateRuling&) const = default;
};

// "n1" of a request for system:node:n1; "" of any other.
std::string requested_node(const kube::CertificateRequest& request);

// `machine`: whose nodeRef is that node, or that has none yet and this name; nothing = there is
// none. `node_is_up`: a Node of that name is Ready, or its Lease is renewed; only for client
// certificates.
// `bootstrap_group`: whose requests for client certificates are looked at; "" = nobody's.
CertificateRuling rule_certificate(const kube::CertificateRequest& request,
                                   const std::optional<MachineNames>& machine, bool node_is_up,
                                   const std::string& bootstrap_group);

}  // namespace slurmlet::op
