#pragma once

// Whether munged listens on this machine, by one connect(2) to its socket and nothing said. Only
// for when Slurm's own command did not end in time: with a munged that was killed it retries for
// 50 seconds before it says why.

#include <optional>
#include <string>

#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// Nothing when munged accepts connections on `socket`. Never blocks.
std::optional<QueryFailure> munge_problem(const std::string& path);

}  // namespace slurmlet::slurm
