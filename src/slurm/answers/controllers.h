#pragma once

// Slurm's controllers as `scontrol ping` shows them, and the command that has a backup take over.
// Pure.

#include <cstddef>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "node/controller.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

CommandSpec ping_query(const ClientSettings& settings);
// In the order of slurm.conf, the primary first.
Result<std::vector<node::Controller>> read_ping(const CommandOutput& output);

// `index`: of the backup in that order.
CommandSpec takeover_command(const ClientSettings& settings, std::size_t index);

}  // namespace slurmlet::slurm
