#pragma once

// Whether a file is still the one that was read.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace slurmlet {

// What distinguishes one state of a file from another: it is replaced, or written to.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  // of its modification
  bool operator==(const FileStamp&) const = default;
};

// Of what the path leads to; nothing, and errno, where stat(2) fails.
inline std::optional<FileStamp> file_stamp(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return FileStamp{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                   info.st_mtim.tv_nsec};
}

}  // namespace slurmlet
