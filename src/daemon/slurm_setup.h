#pragma once

// Finds out which Slurm this machine belongs to: reads slurm.conf and gres.conf and decides the
// NodeName. File reads only; called at start and when slurmd has been started anew, on a thread of
// its own, since the files may lie on a file system that hangs.

#include <string>
#include <vector>

#include "config/settings.h"
#include "sync/slurm_conf_reader.h"

namespace slurmlet::daemon {

// `slurmds` are all that run on this machine as root or SlurmUser. One counts if it is in the unit
// of slurmd, or if the SlurmdPidFile of its slurm.conf names it; a slurm.conf that others may
// change is not read, and no node is chosen then.
sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                std::vector<slurm::SlurmdSeen> slurmds);

// The same for a command that root may run beside the daemon: nothing of a process says which
// slurm.conf is read; only the names that slurmd gives itself (-N) count.
sync::SlurmSetup discover_slurm_for_command(const config::Settings& settings,
                                            const std::string& hostname,
                                            const std::string& kubernetes_node,
                                            std::vector<slurm::SlurmdSeen> slurmds);

// As long as slurm.conf has not been read: the setting slurm.nodeName, slurmd in its unit, no jobs.
sync::SlurmSetup setup_before_slurm_conf(const config::Settings& settings);

// How often slurmctld is queried at a site of so many nodes; nothing = not known (yet).
slurm::PollSettings poll_settings(const config::SlurmSettings& slurm,
                                  std::optional<std::int64_t> nodes);

}  // namespace slurmlet::daemon
