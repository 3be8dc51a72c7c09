#include "host/file_system.h"

#include <sys/statvfs.h>

#include <cerrno>

#include "base/side_call.h"

namespace slurmlet::host {

std::optional<FileSystemUsage> file_system_usage(std::filesystem::path path) {
  touches_file(path.native());
  struct statvfs info {};
  while (::statvfs(path.c_str(), &info) != 0) {
    if (errno != ENOENT || !path.has_relative_path()) {
      return std::nullopt;
    }
    path = path.parent_path();
  }
  return FileSystemUsage{static_cast<std::int64_t>(info.f_blocks * info.f_frsize),
                         static_cast<std::int64_t>(info.f_bavail * info.f_frsize),
                         static_cast<std::int64_t>(info.f_files),
                         static_cast<std::int64_t>(info.f_favail)};
}

}  // namespace slurmlet::host
