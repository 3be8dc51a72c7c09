#pragma once

// `slurmlet-operator power suspend|resume HOSTLIST`, for SuspendProgram and ResumeProgram of Slurm
// (rules/power_rules.h). Writes annotations and returns: reboot.metal3.io/slurmlet on a
// BareMetalHost, which baremetal-operator keeps off until it is removed, and before that
// cluster.x-k8s.io/skip-remediation on its Machine, which the operator removes once the Node is
// back. It needs the operator's kubeconfig and deploy/operator/power.yaml.

#include "operator/options.h"

namespace slurmlet::op {

// Exit code: 0; 1 not all hosts could be switched, each of those is named on stderr.
int run_power(const CommandLine& command);

}  // namespace slurmlet::op
