#include "slurm/local_directory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "base/file.h"
#include "base/mountinfo.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

bool lies_under(std::string_view path, std::string_view mount) {
  return mount == "/" ||
         (path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/'));
}

}  // namespace

std::string file_system_of(std::string_view mountinfo, std::string_view path) {
  std::string type;
  std::size_t longest = 0;
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    const auto fields = split(line.substr(0, dash), ' ');
    if (dash == std::string_view::npos || fields.size() < 5) {
      continue;
    }
    const std::string mount = unescape_mountinfo(fields[4]);
    // Of two mounts on one place the later one is seen.
    if (lies_under(path, mount) && mount.size() >= longest) {
      longest = mount.size();
      const auto rest = line.substr(dash + 3);
      type = rest.substr(0, rest.find(' '));
    }
  }
  return type;
}

bool is_local_file_system(std::string_view type) {
  constexpr std::array<std::string_view, 10> kLocal{"ext2",  "ext3",  "ext4", "xfs", "btrfs",
                                                    "tmpfs", "ramfs", "f2fs", "zfs", "bcachefs"};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

Result<UniqueFd> open_local_directory(const std::string& mountinfo_file, const std::string& path) {
  const auto mountinfo = read_file(mountinfo_file);
  if (!mountinfo || !path.starts_with('/') ||
      !is_local_file_system(file_system_of(*mountinfo, path))) {
    return Error{Code::kUnavailable, path + " is on no local file system"};
  }
  UniqueFd fd{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  for (const auto part : split(path, '/')) {
    if (part.empty()) {
      continue;
    }
    const std::string name{part};
    fd.reset(::openat(fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) {
      return errno == ENOTDIR || errno == ELOOP
                 ? Error{Code::kUnavailable, path + " has a symbolic link in it"}
                 : errno_error(errno, "open directory " + path);
    }
  }
  return fd;
}

}  // namespace slurmlet::slurm
