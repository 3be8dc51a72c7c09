#pragma once

// What all queries by a command of Slurm have in common. Pure.

#include <string>

#include "base/command.h"

namespace slurmlet::slurm {

// `program` of `bin_dir` ("" = PATH) with slurm.conf `conf` ("" = as inherited), and without the
// variables of our environment that would change which cluster or daemon is queried, with which
// credential, or what is printed.
CommandSpec slurm_command(const std::string& bin_dir, const std::string& program,
                          const std::string& conf);

}  // namespace slurmlet::slurm
