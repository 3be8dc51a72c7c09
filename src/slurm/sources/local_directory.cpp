#include "slurm/sources/local_directory.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/mountinfo.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

bool lies_under(std::string_view path, std::string_view mount) {
  return mount == "/" ||
         (path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/'));
}

struct Mount {
  std::string_view type, device, root;
  std::string point;
};

// That `path` lies on; of two mounts on one place the later one is seen.
std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view path) {
  std::optional<Mount> found;
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    const auto fields = split(line.substr(0, dash), ' ');
    if (dash == std::string_view::npos || fields.size() < 5) {
      continue;
    }
    std::string point = unescape_mountinfo(fields[4]);
    if (lies_under(path, point) && (!found || point.size() >= found->point.size())) {
      const auto rest = line.substr(dash + 3);
      found = Mount{rest.substr(0, rest.find(' ')), fields[2], fields[3], std::move(point)};
    }
  }
  return found;
}

}  // namespace

std::string file_system_of(std::string_view mountinfo, std::string_view path) {
  const auto mount = mount_of(mountinfo, path);
  return mount ? std::string{mount->type} : "";
}

std::string place_on_device(std::string_view mountinfo, std::string_view path) {
  const auto mount = mount_of(mountinfo, path);
  if (!mount) {
    return "";
  }
  const auto root = mount->root == "/" ? "" : unescape_mountinfo(mount->root);
  return std::string{mount->device} + " " + root +
         std::string{path.substr(mount->point == "/" ? 0 : mount->point.size())};
}

bool is_seen_alike(const std::string& proc, int pid, const std::string& path) {
  const auto own = read_mountinfo(proc + "/self/mountinfo");
  const auto other = read_mountinfo(proc + "/" + std::to_string(pid) + "/mountinfo");
  return !own || !other || place_on_device(*own, path) == place_on_device(*other, path);
}

bool is_local_file_system(std::string_view type) {
  constexpr std::array<std::string_view, 10> kLocal{"ext2",  "ext3",  "ext4", "xfs", "btrfs",
                                                    "tmpfs", "ramfs", "f2fs", "zfs", "bcachefs"};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

Result<UniqueFd> open_local_directory(const std::string& mountinfo_file, const std::string& path) {
  const auto mountinfo = read_mountinfo(mountinfo_file);
  if (!mountinfo || !path.starts_with('/') ||
      !is_local_file_system(file_system_of(*mountinfo, path))) {
    return Error{Code::kUnavailable, path + " is not on a local file system"};
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
                 ? Error{Code::kUnavailable, path + " contains a symbolic link"}
                 : errno_error(errno, "open directory " + path);
    }
  }
  return fd;
}

}  // namespace slurmlet::slurm
