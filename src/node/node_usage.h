#pragma once

// True use of the whole machine, as host/usage.h reads it and podapi/ serves it. Plain values.

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace slurmlet::node {

struct NodeUsage {
  WallTime time{};
  WallTime booted{};
  double cpu_seconds = 0;           // of all CPUs since boot: all but idle and iowait
  std::optional<double> cpu_cores;  // in use on average since an earlier read()
  // Bytes; available = total - working set.
  std::uint64_t memory_total = 0, memory_available = 0, memory_used = 0;
  std::uint64_t memory_working_set = 0;
  std::uint64_t memory_rss = 0;  // anonymous memory
  std::uint64_t page_faults = 0, major_page_faults = 0;
  std::uint64_t fs_capacity = 0, fs_available = 0,
                fs_used = 0;  // bytes; used counts root's reserve
  std::uint64_t fs_inodes = 0, fs_inodes_free = 0;
  std::uint64_t pid_max = 0;    // the lower of pid_max and threads-max
  std::uint64_t processes = 0;  // threads, as each takes a process ID
};

}  // namespace slurmlet::node
