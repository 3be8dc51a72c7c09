#pragma once

// Reads the machine's usage (node/usage.h) from /proc, and that of a file system.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "host/host_paths.h"
#include "node/usage.h"

namespace slurmlet::host {

// Size and free space of a directory's file system (statvfs(3)) for an unprivileged process: blocks
// reserved for root are not available.
struct FileSystemUsage {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
  std::int64_t total_inodes = 0;  // 0 = unlimited (btrfs, some network file systems)
  std::int64_t available_inodes = 0;
};

// Usage at the nearest existing parent of `path`; nothing if that cannot be read. May hang.
std::optional<FileSystemUsage> file_system_usage(std::filesystem::path path);

// Busy CPU time in the first line of /proc/stat, in ticks (proc_stat(5)): user, which includes
// guest, nice, system, irq, softirq and steal. Pure.
std::optional<std::uint64_t> busy_ticks(std::string_view proc_stat);

// The number of kernel scheduling entities: "0.20 0.18 0.12 1/80 11206" → 80 (proc_loadavg(5)).
std::optional<std::uint64_t> total_tasks(std::string_view loadavg);

// Reads six small files and calls statvfs(3) once. Not thread-safe.
class UsageReader {
 public:
  explicit UsageReader(Paths paths, std::filesystem::path file_system = "/");

  // Nothing if CPU time or memory cannot be read; other unreadable figures are 0.
  std::optional<node::Usage> read(Now now);

 private:
  void measure_cores(node::Usage& usage, SteadyTime now);

  struct Sample {
    SteadyTime at;
    double cpu_seconds;
  };
  Paths paths_;
  std::filesystem::path file_system_;
  double ticks_per_second_;
  std::optional<WallTime> booted_;
  std::optional<Sample> last_sample_;
  std::optional<double> cores_;
};

}  // namespace slurmlet::host
