#pragma once

// The paths that host/ reads, so that tests can pass a tree of their own. Defaults to the running
// machine.

#include <filesystem>

namespace slurmlet::host {

struct Paths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path etc = "/etc";
  std::filesystem::path usr_lib = "/usr/lib";
  std::filesystem::path run = "/run";
  std::filesystem::path state_dir = "/var/lib/slurmlet";
  std::filesystem::path dev = "/dev";
};

}  // namespace slurmlet::host
