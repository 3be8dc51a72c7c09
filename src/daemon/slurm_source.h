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

struct SourceContext {
  http::Client& client;  // of the thread that asks; waits for slurmrestd too
  const Clock& clock;
};

// What the choice depends on. Where sinfo or a socket lies on a file system that hangs, the look is
// given up after a moment: sinfo is then taken to be there, and no socket is.
slurm::SourceFacts source_facts(const config::SlurmSettings& settings);

// Logs the choice, and its changes while running. What `context` refers to must outlive the source.
std::unique_ptr<slurm::NodeSource> make_node_source(const config::Settings& settings,
                                                    const SourceContext& context);

// Asks the slurmd of this machine over loopback (slurmd_probe.h). `first` must outlive it.
slurm::SlurmdProbe make_slurmd_probe(http::Client& first);

// A client that only waits, for those who talk to nobody else.
Result<std::unique_ptr<http::Client>> make_waiting_client();

}  // namespace slurmlet::daemon
