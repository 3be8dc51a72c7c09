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

// The uid to trust for owners and modes on this mount: the user who mounted it with FUSE, else root
// (0), as the kernel. Nothing where no such mount is listed.
std::optional<uid_t> author_of_owners(std::string_view mountinfo, std::string_view mount_id);

// Where `path` (absolute, without links) lies: the device and the path on it, whatever is mounted
// where; "" if unknown.
std::string place_on_device(std::string_view mountinfo, std::string_view path);

// Whether `path` is the same directory for us and for that process, which may have mounts of its
// own (a container, a unit with a private file system). True where /proc does not say.
bool is_seen_alike(const std::string& proc, int pid, const std::string& path);

}  // namespace slurmlet
