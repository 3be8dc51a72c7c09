#pragma once

// The text of `scontrol show slurmd`: what slurmd on this machine says of itself, without
// slurmctld. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::slurm {

// What slurmlet uses of it; the machine's own figures it reads itself.
struct SlurmdStatus {
  std::vector<std::string> active_steps;  // "2.0", "2" (the batch step); empty for NONE
  std::string node_name;                  // "Hostname" is the NodeName
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
