#pragma once

// Linux CPU lists, "0-3,8,10-11" (Documentation/admin-guide/cputopology.rst, "Cpus_allowed_list" in
// proc(5)). Pure.

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace slurmlet {

// More than any kernel is built for (CONFIG_NR_CPUS).
inline constexpr int kMaxCpus = 16384;

// The CPUs named; nothing if it is not such a list, names none or one from kMaxCpus on. White space
// around it is ignored.
std::optional<std::set<int>> parse_cpu_list(std::string_view text);

// "0-3,8": ascending, ranges where two or more follow each other. "" for none.
std::string cpu_list_text(const std::set<int>& cpus);

}  // namespace slurmlet
