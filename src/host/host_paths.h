#pragma once

// Where host/ looks, so that tests can hand in a small tree of their own. The defaults are the
// running machine. A value; safe to copy between threads.

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
