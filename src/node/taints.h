#pragma once

// Taints as the kubelet's --register-with-taints has them: KEY=VALUE:EFFECT or KEY:EFFECT, several
// with commas between. Pure.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/policy.h"

namespace slurmlet::node {

// kInvalid with the taint and what is wrong with it, for people.
Result<std::vector<Taint>> parse_taints(std::string_view text);

}  // namespace slurmlet::node
