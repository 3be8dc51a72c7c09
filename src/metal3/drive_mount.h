#pragma once

// Reads the files of an unmounted config drive without leaving a trace: a child process gets a
// mount namespace of its own, mounts the drive there (read-only, nosuid, nodev, noexec), sends the
// files through a pipe and exits, which takes the mount with it. Nobody else ever sees the mount.
//
// Needs CAP_SYS_ADMIN and access to the device. Blocks for at most about six seconds.

#include <string>

#include "base/result.h"

namespace slurmlet::metal3 {

inline constexpr const char* kDriveDirectory = "openstack/latest";
inline constexpr const char* kMetaDataFile = "meta_data.json";
inline constexpr const char* kNetworkDataFile = "network_data.json";

struct MountedFiles {
  std::string meta_data;
  std::string network_data;  // "" if there is none
};

// kDenied without the capability; kNotFound when the drive has no meta_data.json; kTimeout;
// kInternal. `mount_point` is any existing directory.
Result<MountedFiles> read_by_private_mount(const std::string& device,
                                           const std::string& mount_point);

}  // namespace slurmlet::metal3
