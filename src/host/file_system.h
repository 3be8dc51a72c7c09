#pragma once

// Size and free space of the file system that holds a directory (statvfs(3)), as an unprivileged
// process sees it: the blocks reserved for root do not count as available.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace slurmlet::host {

struct FileSystemUsage {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t total_inodes = 0;  // 0 where inodes are not limited (btrfs, some network ones)
  std::int64_t available_inodes = 0;
};

// Of the nearest directory above `path` that exists; nothing if that cannot be read. May hang.
std::optional<FileSystemUsage> file_system_usage(std::filesystem::path path);

}  // namespace slurmlet::host
