#pragma once

// The text of `scontrol show node` (scontrol(1); the writer is src/api/node_info.c of Slurm), with
// or without -d, -o and SLURM_TIME_FORMAT, of one node or many, of releases 22.05 and later. Never
// asked in a loop: it makes slurmctld send all nodes. Times without a zone are local time. Pure but
// for the time zone.

#include <string_view>

#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// "Node nope01 not found" is kNotInSlurm.
NodesAnswer parse_scontrol_nodes(std::string_view text);

}  // namespace slurmlet::slurm
