#pragma once

// JSON written as block-style YAML, for people (print-node -o yaml). Key order is kept as the
// argument has it. Strings that another reader could take for something else (YAML 1.1 or 1.2
// booleans, numbers, null, dates, indicators, outer white space, control characters) are quoted,
// so that parsing the result gives back the same values. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slurmlet::yaml {

// Ends with a newline.
std::string emit(const nlohmann::json& value);
std::string emit(const nlohmann::ordered_json& value);

// The same from JSON text, whose key order is kept; kInvalid when it is not JSON.
Result<std::string> emit_json_text(std::string_view json_text);

}  // namespace slurmlet::yaml
