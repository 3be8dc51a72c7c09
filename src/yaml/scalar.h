#pragma once

// How a plain scalar is typed by the YAML 1.2 core schema
// (https://yaml.org/spec/1.2.2/#1032-tag-resolution). Pure functions.

#include <cstdint>
#include <optional>
#include <string_view>

#include "yaml/document.h"

namespace slurmlet::yaml {

// kNull, kBool, kInt, kDouble or kString. A whole number beyond 64 bits is a kDouble.
Kind plain_kind(std::string_view text);
// Decimal with optional sign, 0o17 or 0x1F; nothing when it is none of these or does not fit.
std::optional<std::int64_t> core_int(std::string_view text);

}  // namespace slurmlet::yaml
