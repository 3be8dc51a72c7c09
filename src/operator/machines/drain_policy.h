#pragma once

// The words of slurmlet.io/drain-policy and drainPolicy (rules/machine_rules.h). Pure.

#include <optional>
#include <string>
#include <string_view>

#include "operator/rules/machine_rules.h"

namespace slurmlet::op {

// "wait", "now", "deadline=12h"; nothing for other words.
std::optional<DrainPolicy> parse_drain_policy(std::string_view text);

// The same backwards.
std::string drain_policy_text(const DrainPolicy& policy);

// What a Machine's words are to be told, before all else; "" = they are understood, or there are
// none.
std::string about_drain_policy(std::string_view text);

}  // namespace slurmlet::op
