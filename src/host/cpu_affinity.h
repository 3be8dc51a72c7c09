#pragma once

// Which CPUs processes may run on (sched_setaffinity(2), "Cpus_allowed_list" of proc(5)). CPU
// numbers are the kernel's.

#include <set>
#include <string>

#include "base/result.h"

namespace slurmlet::host {

// The CPUs that a process may use: its affinity within its cpuset. kNotFound when it is gone.
Result<std::set<int>> allowed_cpus(const std::string& proc_root, int pid);

// The CPUs that are online (/sys/devices/system/cpu/online).
Result<std::set<int>> online_cpus(const std::string& sys_root);

// Binds every thread of this process, now and those that they start later, and children started
// from now on. kInvalid when none of `cpus` is one that this process may have (offline, or outside
// its cpuset).
Status bind_all_threads(const std::set<int>& cpus);

}  // namespace slurmlet::host
