#pragma once

// The text of `scontrol show slurmd`: what slurmd on this machine says of itself, without
// slurmctld. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slurmlet::slurm {

struct SlurmdStatus {
  std::vector<std::string> active_steps;  // "2.0", "2" (the batch step); empty for NONE
  std::optional<std::int64_t> cpus;       // of the machine, not those that Slurm may use
  std::optional<std::int64_t> boards, sockets, cores, threads_per_core;
  std::optional<std::int64_t> real_memory_mib, temporary_disk_mib;
  std::optional<WallTime> started;                 // "Boot time" is that of slurmd
  std::string node_name;                           // "Hostname" is the NodeName
  std::optional<WallTime> last_slurmctld_message;  // nothing for NONE
  std::optional<std::int64_t> pid;
  std::string log_file;
  std::string version;
  std::vector<std::string> not_understood;
  bool operator==(const SlurmdStatus&) const = default;
};

// The output of `slurmd -V`: "slurm-wlm 22.05.8\n" → "22.05.8", "slurm 25.11.0" → "25.11.0"; ""
// when it is neither.
std::string parse_slurmd_version(std::string_view text);

bool looks_like_slurmd_status(std::string_view text);
SlurmdStatus parse_slurmd_status(std::string_view text);

}  // namespace slurmlet::slurm
