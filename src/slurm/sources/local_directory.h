#pragma once

// A directory that can be read without waiting for another machine. Reading from a network file
// system whose server is gone never returns, not even by a signal; so whether a path is local is
// decided by the kernel's table of mounts, which is always readable, before it is touched.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet::slurm {

// The type of the file system that `path` (absolute, without links) lies on, by the text of
// /proc/PID/mountinfo (proc(5)): "ext4", "nfs4"; "" if unknown. Pure.
std::string file_system_of(std::string_view mountinfo, std::string_view path);

// Where `path` lies: the device and the path on it, whatever is mounted where. Pure.
std::string place_on_device(std::string_view mountinfo, std::string_view path);

// Whether `path` is the same directory for us and for that process, which may have mounts of its
// own (a container, a unit with a private file system). True where /proc does not tell.
bool is_seen_alike(const std::string& proc, int pid, const std::string& path);

// Whether files of that type are on this machine. Pure.
bool is_local_file_system(std::string_view type);

// Opens it, if its file system is a local one and no part of it is a symbolic link (which could
// lead elsewhere): kNotFound, kDenied; kUnavailable when it is not to be read directly.
Result<UniqueFd> open_local_directory(const std::string& mountinfo_file, const std::string& path);

}  // namespace slurmlet::slurm
