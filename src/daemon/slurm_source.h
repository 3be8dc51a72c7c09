#pragma once

// Who is queried about this node, as slurm.source says, made of the sources in slurm/.

#include <memory>

#include "config/settings.h"
#include "http/client.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::daemon {

slurm::PollSources poll_sources(const config::SlurmSettings& slurm);

// A client that only waits, for those who talk to nobody else.
Result<std::unique_ptr<http::Client>> make_waiting_client();

}  // namespace slurmlet::daemon
