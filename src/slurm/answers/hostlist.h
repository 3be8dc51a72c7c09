#pragma once

// Slurm's host list expressions: "node[01-10,15],login1", "rack[1-2]n[1-4]-ib" (slurm.conf(5),
// NodeName). A range counts up with the width of its lower end: [01-10] is 01 … 10, [9-11] is
// 9, 10, 11. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurmlet::slurm {

inline constexpr std::size_t kMaxExpandedHosts = 131072;

// Every name, in order. kInvalid when brackets do not match, a range is not of numbers, or more
// than `limit` names would come out.
Result<std::vector<std::string>> expand_hostlist(std::string_view list,
                                                 std::size_t limit = kMaxExpandedHosts);

// How many names that would be, without expanding it; 0 for a malformed list, and at most
// kMaxExpandedHosts.
std::size_t count_hostlist(std::string_view list);

// Whether `name` is one of the list's, without expanding it. A malformed element has no names.
bool hostlist_contains(std::string_view list, std::string_view name);

// The elements between the commas outside of brackets: "n[1,3],x" → "n[1,3]", "x".
std::vector<std::string_view> hostlist_elements(std::string_view list);

}  // namespace slurmlet::slurm
