#pragma once

// virtual-kubelet's --provider-config: the JSON file of its mock provider (type MockConfig), with
// the member "labels" that the fork for Cluster API's bare-metal nodes added:
//   {"<node name>": {"cpu": "0", "memory": "0Gi", "pods": "0", "others": {…},
//                    "labels": {"metal3.io/uuid": "…"}, "providerID": "…"}}
// Labels and providerID of the entry for this node are taken; its resources give way to those of
// the machine.

#include <string>
#include <string_view>

#include "config/draft.h"

namespace slurmlet::config {

// To be called when node.name is final. What node.labels, node.metal3UUID and node.providerID say
// is kept; a contradiction in the last two is a problem.
void apply_provider_config(std::string_view text, const std::string& file_name, Draft& draft);

}  // namespace slurmlet::config
