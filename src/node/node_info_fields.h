#pragma once

// A NodeInfo by the names that its fields have in the API (core/v1 NodeSystemInfo). All of
// them always: the API marks them required, and "" is how the kubelet says "none". Pure.

#include <map>
#include <string>

#include "node/node.h"

namespace slurmlet::node {

std::map<std::string, std::string> node_info_fields(const NodeInfo& info);

}  // namespace slurmlet::node
