#pragma once

// Finds out which Slurm this machine belongs to: reads slurm.conf and gres.conf and decides the
// NodeName. File reads only; called at start and when slurmd has been started anew.

#include <string>
#include <vector>

#include "config/settings.h"
#include "sync/facts_sync.h"

namespace slurmlet::daemon {

// `slurmds` are all that run on this machine as root or SlurmUser. One counts if it is in the unit
// of slurmd, or if the SlurmdPidFile of its slurm.conf names it; a slurm.conf that others may
// change is not read, and no node is chosen then.
sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                const std::vector<slurm::SlurmdSeen>& slurmds);

// The same for a command that root may run beside the daemon: nothing of a process says which
// slurm.conf is read; only the names that slurmd gives itself (-N) count.
sync::SlurmSetup discover_slurm_for_command(const config::Settings& settings,
                                            const std::string& hostname,
                                            const std::string& kubernetes_node,
                                            std::vector<slurm::SlurmdSeen> slurmds);

// Says that slurm.queriesPerHour does not carry slurm.pollInterval; "" where it does, or where a
// feed comes first, which costs no queries.
std::string stretched_interval(const config::SlurmSettings& slurm);

// How slurmctld is asked.
slurm::PollSettings poll_settings(const config::Settings& settings);

// The cluster that a feed must be of; "" without slurm.feed, or if slurm.conf does not name it.
std::string feed_cluster(const config::Settings& settings, const std::string& hostname,
                         const std::string& kubernetes_node);

}  // namespace slurmlet::daemon
