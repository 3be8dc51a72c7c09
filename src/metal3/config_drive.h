#pragma once

// Reads Metal3's metadata from the config drive, for machines without cloud-init's file (Ignition
// images, cloud-init switched off after the first boot). Ironic puts the drive on the root disk as
// a small partition with the label config-2, iso9660 or vfat, that holds
// openstack/latest/{meta_data.json,network_data.json}.
//
// Looked for in this order: cloud-init's seed directory; the drive where it is mounted. slurmlet
// mounts nothing itself.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "metal3/metadata.h"
#include "metal3/metal3_paths.h"

namespace slurmlet::metal3 {

struct DriveFiles {
  std::string meta_data;
  std::string network_data;  // "" if the drive has none
  std::string source;
};

// kNotFound: there is no config drive. kDenied: there is one that is not mounted; the message says
// what to do.
Result<DriveFiles> read_drive_files(const Paths& paths);

// The same, understood. Errors as parse_instance_data's.
Result<Reading> read_config_drive(const Paths& paths);

// Where `device` (canonical path, or "8:4" as major:minor) is mounted as a whole, by the text of
// /proc/PID/mountinfo (proc_pid_mountinfo(5)). Pure.
std::optional<std::string> mount_point_of(std::string_view mountinfo, const std::string& device,
                                          const std::string& major_minor);

}  // namespace slurmlet::metal3
