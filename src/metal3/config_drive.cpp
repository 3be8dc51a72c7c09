// Finds the config drive's disk and mount point.

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/mountinfo.h"
#include "base/result.h"
#include "base/text.h"
#include "metal3/metadata.h"

namespace slurmlet::metal3 {
namespace {

constexpr const char* kDriveDirectory = "openstack/latest";
constexpr const char* kMetaDataFile = "meta_data.json";
constexpr const char* kNetworkDataFile = "network_data.json";

struct DriveFiles {
  std::string meta_data;
  std::string network_data;  // "" if the drive has none
  std::string source;
};

Result<DriveFiles> read_directory(const std::filesystem::path& root, const std::string& source) {
  const auto latest = root / kDriveDirectory;
  auto meta_data = TRY(read_file(latest / kMetaDataFile));
  const auto network_data = read_file(latest / kNetworkDataFile);
  return DriveFiles{std::move(meta_data), network_data ? *network_data : std::string{}, source};
}

std::string major_minor_of(const std::filesystem::path& device) {
  struct stat info {};
  if (::stat(device.c_str(), &info) != 0 || !S_ISBLK(info.st_mode)) {
    return {};
  }
  return fmt::format("{}:{}", major(info.st_rdev), minor(info.st_rdev));
}

Result<DriveFiles> read_device(const Paths& paths, const std::filesystem::path& link) {
  std::error_code error;
  const auto device = std::filesystem::canonical(link, error);
  if (error) {
    return errno_error(error.value(), "resolve " + link.string());
  }
  const auto mountinfo = read_mountinfo(paths.mountinfo);
  const auto mounted = mountinfo
                           ? mount_point_of(*mountinfo, device.string(), major_minor_of(device))
                           : std::nullopt;
  if (mounted) {
    return read_directory(*mounted,
                          fmt::format("config drive {} at {}", device.string(), *mounted));
  }
  return Error{Code::kDenied,
               fmt::format("config drive {} is not mounted. Mount it at boot, e.g. with this line "
                           "in /etc/fstab: LABEL={} /run/config-drive auto "
                           "ro,nosuid,nodev,noexec,nofail 0 0",
                           device.string(), link.filename().string())};
}

Result<DriveFiles> read_drive_files(const Paths& paths) {
  if (auto seed = read_directory(paths.seed, paths.seed.string())) {
    return seed;
  }
  for (const char* label : {"config-2", "CONFIG-2"}) {
    const auto link = paths.disks_by_label / label;
    std::error_code ignored;
    if (std::filesystem::exists(link, ignored)) {
      return read_device(paths, link);
    }
  }
  return Error{Code::kNotFound,
               fmt::format("no disk labelled config-2 in {}", paths.disks_by_label.string())};
}

}  // namespace

std::optional<std::string> mount_point_of(std::string_view mountinfo, const std::string& device,
                                          const std::string& major_minor) {
  for (const std::string_view line : split(mountinfo, '\n')) {
    // id parent major:minor root mount-point options optional… - type source super-options
    const auto field = split(line, ' ');
    const auto dash = std::find(field.begin(), field.end(), "-");
    if (field.size() < 6 || field.end() - dash < 3 || field[3] != "/") {
      continue;
    }
    const bool same_number = !major_minor.empty() && field[2] == major_minor;
    if (same_number || unescape_mountinfo(dash[2]) == device) {
      return unescape_mountinfo(field[4]);
    }
  }
  return std::nullopt;
}

Result<Reading> read_config_drive(const Paths& paths) {
  const auto files = TRY(read_drive_files(paths));
  return parse_config_drive(files.meta_data, files.network_data, files.source);
}

}  // namespace slurmlet::metal3
