#include "daemon/slurm_source.h"

#include <utility>

#include "base/command.h"
#include "http/curl_client.h"
#include "slurm/sources/scontrol_source.h"

namespace slurmlet::daemon {

using node::SlurmSource;

slurm::PollSources poll_sources(const config::SlurmSettings& slurm) {
  slurm::PollSources sources;
  if (slurm.source != SlurmSource::kScontrol) {
    sources.record.emplace(slurm.source == SlurmSource::kOperator);
  }
  if (slurm.source != SlurmSource::kOperator) {
    sources.query = std::make_unique<slurm::ScontrolSource>(
        slurm::ClientSettings{slurm.conf, slurm.bin_dir, slurm.command_timeout},
        std::make_unique<Command>());
  }
  return sources;
}

Result<std::unique_ptr<http::Client>> make_waiting_client() {
  http::Endpoint nobody;
  nobody.url = "http://localhost";
  return http::make_curl_client(nobody, nullptr, {});
}

}  // namespace slurmlet::daemon
