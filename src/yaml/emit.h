#pragma once

// JSON written as block-style YAML by libyaml, for people (print-node -o yaml). Key order is kept
// as the argument has it. Strings that another reader could take for something else (YAML 1.1 or
// 1.2 booleans, numbers, null, dates) are quoted, so that parsing the result gives back the same
// values. Pure function.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slurmlet::yaml {

// Ends with a newline.
std::string emit(const nlohmann::ordered_json& value);

}  // namespace slurmlet::yaml
