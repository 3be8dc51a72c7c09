#pragma once

// Linux CPU lists, "0-3,8,10-11" (Documentation/admin-guide/cputopology.rst). Pure.

#include <cstdint>
#include <optional>
#include <string_view>

namespace slurmlet::host {

// How many CPUs the list names; nothing if it is not such a list or names none.
std::optional<std::int64_t> count_cpus(std::string_view list);

}  // namespace slurmlet::host
