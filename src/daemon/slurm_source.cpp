#include "daemon/slurm_source.h"

#include <utility>
#include <vector>

#include "base/command.h"
#include "base/log.h"
#include "base/side_call.h"
#include "daemon/rest_access.h"
#include "http/curl_client.h"
#include "slurm/sources/auto_source.h"
#include "slurm/sources/record_source.h"
#include "slurm/sources/rest_source.h"
#include "slurm/sources/sinfo_source.h"

namespace slurmlet::daemon {
namespace {

using node::SlurmSource;
using Source = std::unique_ptr<slurm::NodeSource>;

Source make_source(const slurm::SourceOption& option, bool is_only,
                   const config::SlurmSettings& slurm, http::Client& client, const Clock& clock) {
  switch (option.kind) {
    case SlurmSource::kOperator:
      return std::make_unique<slurm::RecordSource>(is_only);
    case SlurmSource::kRest:
      return std::make_unique<slurm::RestSource>(
          rest_connection(slurm, option.where, client, clock));
    case SlurmSource::kAuto:
    case SlurmSource::kCli:
      break;
  }
  return std::make_unique<slurm::SinfoSource>(
      slurm::SinfoSettings{slurm.conf, slurm.bin_dir, slurm.command_timeout},
      std::make_unique<Command>());
}

}  // namespace

slurm::SourceFacts source_facts(const config::SlurmSettings& settings) {
  const std::string& bin_dir = settings.bin_dir;
  slurm::SourceFacts facts{settings.source, settings.rest_url, "", {}};
  if (facts.source == SlurmSource::kRest || facts.source == SlurmSource::kOperator) {
    return facts;
  }
  SideCall<Result<slurm::SourceFacts>> call;
  auto seen = in_time(call, [facts, bin_dir]() mutable {
    facts.sinfo = slurm::find_program("sinfo", bin_dir);
    if (facts.source == SlurmSource::kAuto) {
      facts.sockets = slurm::existing_sockets(slurm::usual_rest_sockets());
    }
    return Result{facts};
  });
  if (seen) {
    return *std::move(seen);
  }
  facts.sinfo = bin_dir.empty() ? "sinfo" : bin_dir + "/sinfo";
  return facts;
}

Source make_node_source(const config::Settings& settings, http::Client& client,
                        const Clock& clock) {
  const config::SlurmSettings& slurm = settings.slurm;
  const auto options = slurm::choose_sources(source_facts(slurm));
  // What comes first or, where that may be missing, second.
  const bool may_have_record = options.size() > 1 && options.front().kind == SlurmSource::kOperator;
  log::info(may_have_record
                ? slurm::describe(options[1]) + "; a record of slurmlet-operator takes its place"
                : slurm::describe(options.front()));
  std::vector<Source> sources;
  sources.reserve(options.size());
  for (const auto& option : options) {
    sources.push_back(make_source(option, options.size() == 1, slurm, client, clock));
  }
  if (sources.size() == 1) {
    return std::move(sources.front());
  }
  return std::make_unique<slurm::AutoSource>(
      std::move(sources),
      [](bool worse, const std::string& change) { (worse ? log::warning : log::info)(change); },
      system_random());
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
