#pragma once

// What all queries by a command of Slurm have in common. Pure.

#include <string>

#include "base/command.h"

namespace slurmlet::slurm {

// `program` of `bin_dir` ("" = PATH) with slurm.conf `conf` ("" = where Slurm looks by itself).
CommandSpec slurm_command(const std::string& bin_dir, const std::string& program,
                          const std::string& conf);

}  // namespace slurmlet::slurm
