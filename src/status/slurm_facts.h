#pragma once

#include "status/report.h"

namespace slurmlet::status {

// What the report has of Slurm, for the rules of node/slurm_view.h.
node::HostFacts slurm_facts(const Report& report);

}  // namespace slurmlet::status
