#pragma once

// Linux CPU lists, "0-3,8,10-11" (Documentation/admin-guide/cputopology.rst, "Cpus_allowed_list" in
// proc(5)). Pure.

#include <optional>
#include <set>
#include <string_view>

namespace slurmlet {

// The CPUs named; nothing if it is not such a list, names none or one from 16384 on. White space
// around it is ignored.
std::optional<std::set<int>> parse_cpu_list(std::string_view text);

}  // namespace slurmlet
