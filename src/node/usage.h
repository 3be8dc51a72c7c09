#pragma once

// True use of the whole machine, for /stats/summary and /metrics/resource on the kubelet port.
//
// Memory is reckoned as the kubelet does for the root cgroup, since `kubectl top node` is compared
// with the other nodes of the cluster: used = anonymous memory + page cache ("anon" + "file" of
// memory.stat, https://docs.kernel.org/admin-guide/cgroup-v2.html), working set = used without the
// inactive page cache. Both come from /proc/meminfo, which has the same counters on every cgroup
// version: anon = AnonPages, file = Cached + Buffers + SwapCached. MemTotal - MemAvailable, the
// other candidate, counts the kernel's own memory and reserved huge pages too and can differ by
// gigabytes either way.

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace slurmlet::node {

struct Usage {
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
