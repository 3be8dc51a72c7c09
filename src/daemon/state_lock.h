#pragma once

// One daemon for one state directory: two with the same credential, saved identity and Node would
// write over each other.

#include <filesystem>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet::daemon {

// Holds DIRECTORY/lock (a record lock, fcntl_locking(2)) until the descriptor is closed; the kernel
// frees it when the process ends. As with each such lock, closing any other descriptor of that file
// in this process frees it too, and the process that holds it does not conflict with itself.
// kConflict with the holder's pid when another process has it. An empty descriptor where no lock
// can be made (a read-only file system): the daemon works without.
Result<UniqueFd> lock_state_directory(const std::filesystem::path& directory);

// Whether `lock` is the lock of this directory, however its path is written. False for an empty
// descriptor, and where the directory has been made anew since.
bool is_lock_of(const UniqueFd& lock, const std::filesystem::path& directory);

}  // namespace slurmlet::daemon
