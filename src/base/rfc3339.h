#pragma once

// Kubernetes time formats (apimachinery meta/v1 Time and MicroTime), always UTC.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace slurmlet {

// "2026-11-20T14:02:11Z" (meta/v1 Time).
std::string rfc3339(WallTime time);
// "2026-11-20T14:02:11.123456Z" (meta/v1 MicroTime, six digits always).
std::string rfc3339_micro(WallTime time);
// Reads either form, with any number of fraction digits and Z or a numeric offset.
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace slurmlet
