#pragma once

// Slurm's controllers as `scontrol ping` shows them, and the command that has a backup take over.
// A slurmctld that is UP may be a standby. Pure.

#include <cstddef>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

struct Controller {
  std::string host;  // of SlurmctldHost
  bool up = false;
};

CommandSpec ping_query(const ClientSettings& settings);
// In the order of slurm.conf, the primary first.
Result<std::vector<Controller>> read_ping(const CommandOutput& output);

// `index`: of the backup in that order.
CommandSpec takeover_command(const ClientSettings& settings, std::size_t index);

}  // namespace slurmlet::slurm
