#pragma once

// The text of /proc/PID/mountinfo (proc(5)).

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slurmlet {

// A node may have thousands of mounts: containers and their overlays.
Result<std::string> read_mountinfo(const std::filesystem::path& path = "/proc/self/mountinfo");

// A field as it is meant: space, tab, line end and backslash are written as \ooo there.
std::string unescape_mountinfo(std::string_view field);

// Whose word the owners and modes are that files on this mount show: that of the user who mounted
// it with FUSE, else the kernel's, which is root's (0). Nothing where no such mount is listed.
std::optional<uid_t> author_of_owners(std::string_view mountinfo, std::string_view mount_id);

}  // namespace slurmlet
