#pragma once

// The few things of proc(5) that this component reads. `proc` is the mount point ("/proc"), so that
// tests can lay out their own. Nothing here waits or sends signals. A process that ends while it is
// read gives nothing.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/trusted_file.h"

namespace slurmlet::slurm {

struct ProcessStat {
  char state = '?';  // R, S, D, T (stopped), t (traced), Z, X, I
  int parent = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  bool has_ended() const { return state == 'Z' || state == 'X'; }
};

// /proc/PID/comm without the line end; "" when there is no such process (or it is hidden).
std::string process_name(const std::string& proc, int pid);
std::optional<ProcessStat> process_stat(const std::string& proc, int pid);
// /proc/PID/cmdline; a kernel thread or zombie has none.
std::vector<std::string> process_arguments(const std::string& proc, int pid);
// The value of NAME in /proc/PID/environ; nothing when unset or not ours to read.
std::optional<std::string> process_environment(const std::string& proc, int pid,
                                               const std::string& name);
// Whether /proc/PID/environ is ours to read: of our own user's processes, and of all for root.
bool process_environment_readable(const std::string& proc, int pid);
// The user of a process, of /proc/PID/status, as our own user namespace numbers it.
struct ProcessOwner {
  std::array<uid_t, 4> uids{};  // real, effective, saved, of the file system
  gid_t real_gid = 0;
};
std::optional<ProcessOwner> process_owner(const std::string& proc, int pid);
// Whether its real user and group are among those; the effective ones may change for a while.
bool was_started_by(const std::string& proc, int pid, const TrustedUsers& users);
// The paths in /proc/PID/cgroup, one for each hierarchy.
std::vector<std::string> process_cgroups(const std::string& proc, int pid);
// Every pid, unsorted.
Result<std::vector<int>> process_ids(const std::string& proc);

}  // namespace slurmlet::slurm
