#pragma once

// The text of /proc/PID/mountinfo (proc(5)). Pure.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace slurmlet {

// A field as it is meant: space, tab, line end and backslash are written as \ooo there.
std::string unescape_mountinfo(std::string_view field);

// Whose word the owners and modes are that files on this mount show: that of the user who mounted
// it with FUSE, else the kernel's, which is root's (0). Nothing where no such mount is listed.
std::optional<uid_t> author_of_owners(std::string_view mountinfo, std::string_view mount_id);

}  // namespace slurmlet
