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
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "host/host_paths.h"
#include "node/node_usage.h"

namespace slurmlet::host {

// CPU time of the first line of /proc/stat that is not idle, in ticks (proc_stat(5)): user, nice,
// system, irq, softirq and steal. guest is within user. Pure.
std::optional<std::uint64_t> busy_ticks(std::string_view proc_stat);

// Reads it: six small files and one statvfs(3). Not thread-safe.
class UsageReader {
 public:
  explicit UsageReader(Paths paths, std::filesystem::path file_system = "/");

  // Nothing if CPU time or memory cannot be read; what else cannot be read is 0.
  std::optional<node::NodeUsage> read(Now now);

 private:
  void measure_cores(node::NodeUsage& usage, SteadyTime now);

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
