#pragma once

// The text of /proc/PID/mountinfo (proc(5)). Pure.

#include <string>
#include <string_view>

namespace slurmlet {

// A field as it is meant: space, tab, line end and backslash are written as \ooo there.
std::string unescape_mountinfo(std::string_view field);

}  // namespace slurmlet
