#pragma once

// `slurmlet-operator uninstall`: lists what the operator left in the cluster, in Slurm and on this
// host, and takes it back, in an order that loses nothing (uninstall_rules.h). It leads meanwhile,
// so that no operator writes again what was taken back; rights and the Lease go last. Needs root;
// may be repeated.

#include "operator/options.h"

namespace slurmlet::op {

// Exit code: 0 nothing is left; 1 something stays, and was named, or it could not be done; 2 bad
// configuration.
int run_uninstall(const CommandLine& command);

}  // namespace slurmlet::op
