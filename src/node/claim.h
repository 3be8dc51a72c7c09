#pragma once

// Whether an existing Node of our name is ours. The Metal3 uuid decides where both sides have one,
// then the SMBIOS UUID; the machine id never does, since a reinstalled host has a new one. A Node
// of a kubelet (it has a container runtime) is ours only where one of them, or spec.providerID, is
// equal. Pure.

#include <optional>
#include <string>

#include "node/node.h"

namespace slurmlet::node {

// Nothing if `observed` may be adopted by the machine that wants `desired`, else who holds the name
// and what to do about it, for people.
std::optional<std::string> foreign_claim(const ObservedNode& observed, const DesiredNode& desired);

// Taints of slurmlet itself that the Node lacks; a node credential cannot add them later.
std::vector<Taint> missing_taints(const ObservedNode& observed, const DesiredNode& desired);

}  // namespace slurmlet::node
