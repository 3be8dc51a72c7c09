#pragma once

// Who is asked about this node, as slurm.source says, made of the sources in slurm/.

#include <functional>
#include <memory>

#include "base/clock.h"
#include "config/settings.h"
#include "http/client.h"
#include "slurm/local/slurmd_probe.h"
#include "slurm/sources/node_source.h"
#include "slurm/sources/source_choice.h"

namespace slurmlet::daemon {

// What the choice depends on. Where sinfo or a socket lies on a file system that hangs, the look is
// given up after a moment: sinfo is then taken to be there, and no socket is.
slurm::SourceFacts source_facts(const config::SlurmSettings& settings);

// Logs the choice, and its changes while running. `client` is that of the thread that asks and
// waits for slurmrestd too; it and `clock` must outlive the source.
std::unique_ptr<slurm::NodeSource> make_node_source(const config::Settings& settings,
                                                    http::Client& client, const Clock& clock);

// Asks the slurmd of this machine over loopback (slurmd_probe.h). `first` must outlive it.
slurm::SlurmdProbe make_slurmd_probe(http::Client& first);

// A client that only waits, for those who talk to nobody else.
Result<std::unique_ptr<http::Client>> make_waiting_client();

}  // namespace slurmlet::daemon
