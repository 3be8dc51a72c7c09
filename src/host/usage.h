#pragma once

// Reads the use of the whole machine (node/usage.h) from /proc, and that of a file system.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "host/host_paths.h"
#include "node/usage.h"

namespace slurmlet::host {

// Size and free space of the file system that holds a directory (statvfs(3)), as an unprivileged
// process sees it: the blocks reserved for root do not count as available.
struct FileSystemUsage {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t total_inodes = 0;  // 0 where inodes are not limited (btrfs, some network ones)
  std::int64_t available_inodes = 0;
};

// Of the nearest directory above `path` that exists; nothing if that cannot be read. May hang.
std::optional<FileSystemUsage> file_system_usage(std::filesystem::path path);

// CPU time of the first line of /proc/stat that is not idle, in ticks (proc_stat(5)): user, nice,
// system, irq, softirq and steal. guest is within user. Pure.
std::optional<std::uint64_t> busy_ticks(std::string_view proc_stat);

// The number of kernel scheduling entities: "0.20 0.18 0.12 1/80 11206" → 80 (proc_loadavg(5)).
std::optional<std::uint64_t> total_tasks(std::string_view loadavg);

// Reads it: six small files and one statvfs(3). Not thread-safe.
class UsageReader {
 public:
  explicit UsageReader(Paths paths, std::filesystem::path file_system = "/");

  // Nothing if CPU time or memory cannot be read; what else cannot be read is 0.
  std::optional<node::Usage> read(Now now);

 private:
  void measure_cores(node::Usage& usage, SteadyTime now);

  struct Look {
    SteadyTime at;
    double cpu_seconds;
  };
  Paths paths_;
  std::filesystem::path file_system_;
  double ticks_per_second_;
  std::optional<WallTime> booted_;
  std::optional<Look> last_look_;
  std::optional<double> cores_;
};

}  // namespace slurmlet::host
