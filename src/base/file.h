#pragma once

// Small files, whole: reading with a size limit, writing atomically.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurmlet {

inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

// As many symbolic links on the way to a file as the kernel follows (path_resolution(7)).
inline constexpr int kMaxLinks = 40;

// The whole content. kNotFound, kDenied, kInvalid (longer than max_bytes, or not a regular file: a
// FIFO or a terminal could keep us waiting for ever) or kInternal; the message names the file.
// Works on /proc and /sys (size 0 there).
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t max_bytes = kMaxFileBytes);

// Whether a file is still the one that was read: what distinguishes one state of it from another,
// when it is replaced, or written to.
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

struct StampedFile {
  FileStamp stamp;
  std::string content;
};
// The same where it is no longer the file of `before`, else nothing. May hang (detached_task.h).
Result<std::optional<StampedFile>> read_if_changed(const std::filesystem::path& path,
                                                   const std::optional<FileStamp>& before,
                                                   std::size_t max_bytes = kMaxFileBytes);

// The rest of an open descriptor, for callers that open files themselves. `name` is for errors:
// kInvalid (longer than max_bytes) or those of read(2).
Result<std::string> read_to_end(int fd, const std::string& name, std::size_t max_bytes);

// read_file() without trailing white space; "" when the file cannot be read.
std::string read_trimmed(const std::filesystem::path& path);

// Writes to a temporary file beside `path`, fsyncs and renames, so that a crash leaves either the
// old or the new content. Missing parent directories are made with mode 0755, whatever the umask.
// The owner, where one is given, is set before the file has its name: another user's link in its
// place is never followed.
struct FileOwner {
  uid_t uid = static_cast<uid_t>(-1);  // -1 = stays
  gid_t gid = static_cast<gid_t>(-1);
};
Status write_file_atomic(const std::filesystem::path& path, std::string_view content, mode_t mode,
                         std::optional<FileOwner> owner = {});

// The name of the file that was being written when a crash left `name` behind; nothing where `name`
// is no temporary file of write_file_atomic().
std::optional<std::string> unfinished_target(const std::string& name);

// Names in a directory, unsorted, without "." and "..". kInvalid when `path` is something else.
Result<std::vector<std::string>> list_directory(const std::filesystem::path& path);

// The Error that an errno stands for: "open /x: No such file or directory".
Error errno_error(int error_number, const std::string& what);

}  // namespace slurmlet
