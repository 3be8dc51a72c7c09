#pragma once

// Finds out which Slurm this machine belongs to: reads slurm.conf and gres.conf and decides the
// NodeName. File reads only; called at start and when slurmd has been started anew.

#include <string>

#include "config/settings.h"
#include "sync/facts_sync.h"

namespace slurmlet::app {

// `slurmd_option` is NAME of the running slurmd's -N; "" if unknown.
sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                const std::string& slurmd_option);

// How slurmctld is asked.
slurm::PollSettings poll_settings(const config::Settings& settings, const std::string& conf_path);

}  // namespace slurmlet::app
