#pragma once

// Where metal3/ looks, so that tests can hand in a small tree of their own. The defaults are the
// running machine. A value; safe to copy between threads.

#include <filesystem>

namespace slurmlet::metal3 {

struct Paths {
  std::filesystem::path instance_data = "/run/cloud-init/instance-data.json";
  std::filesystem::path seed = "/var/lib/cloud/seed/config_drive";
  std::filesystem::path disks_by_label = "/dev/disk/by-label";
  std::filesystem::path mountinfo = "/proc/self/mountinfo";
  std::filesystem::path state_dir = "/var/lib/slurmlet";
};

}  // namespace slurmlet::metal3
