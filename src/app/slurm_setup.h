#pragma once

// Finds out which Slurm this machine belongs to: reads slurm.conf and gres.conf and decides the
// NodeName. File reads only; called at start and when slurmd has been started anew.

#include <string>
#include <vector>

#include "config/settings.h"
#include "sync/facts_sync.h"

namespace slurmlet::app {

// `slurmds` are all that run on this machine.
sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                const std::vector<slurm::SlurmdSeen>& slurmds);

// Says that slurm.questionsPerHour does not carry slurm.pollInterval; "" where it does, or where a
// feed comes first, which costs no questions.
std::string stretched_interval(const config::SlurmSettings& slurm);

// How slurmctld is asked.
slurm::PollSettings poll_settings(const config::Settings& settings);

// The cluster that a feed must be of; "" without slurm.feed, or if slurm.conf does not tell.
std::string feed_cluster(const config::Settings& settings, const std::string& hostname,
                         const std::string& kubernetes_node);

}  // namespace slurmlet::app
