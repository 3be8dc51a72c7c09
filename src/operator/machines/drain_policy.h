#pragma once

// Text form of slurmlet.io/drain-policy and drainPolicy (rules/machine_rules.h). Pure.

#include <optional>
#include <string>
#include <string_view>

#include "operator/rules/machine_rules.h"

namespace slurmlet::op {

// Parses "wait", "now" or "deadline=12h".
std::optional<DrainPolicy> parse_drain_policy(std::string_view text);

// The inverse of parse_drain_policy().
std::string drain_policy_text(const DrainPolicy& policy);

// A prefix for messages about a Machine whose annotation is invalid; else "".
std::string drain_policy_problem(std::string_view text);

}  // namespace slurmlet::op
