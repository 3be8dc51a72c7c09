#pragma once

#include "app/report.h"

namespace slurmlet::app {

// What the report has of Slurm, for the rules of node/slurm_view.h.
node::HostFacts slurm_facts(const Report& report);

}  // namespace slurmlet::app
