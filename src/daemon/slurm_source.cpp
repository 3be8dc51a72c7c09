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

slurm::SlurmdProbe make_slurmd_probe(http::Client& first) {
  return slurm::SlurmdProbe{[&first](int port) -> std::unique_ptr<http::Client> {
    auto credentials = std::make_shared<http::Credentials>();
    credentials->endpoint.url = "http://127.0.0.1:" + std::to_string(port);
    auto client = http::make_sibling(first, [credentials] { return credentials; });
    return client ? *std::move(client) : nullptr;
  }};
}

Result<std::unique_ptr<http::Client>> make_waiting_client() {
  http::Endpoint nobody;
  nobody.url = "http://localhost";
  return http::make_curl_client(nobody, nullptr, {});
}

}  // namespace slurmlet::daemon
