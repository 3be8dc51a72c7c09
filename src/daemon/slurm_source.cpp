#include "daemon/slurm_source.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "base/log.h"
#include "daemon/rest_access.h"
#include "http/curl_client.h"
#include "slurm/local/command_runner.h"
#include "slurm/sources/auto_source.h"
#include "slurm/sources/feed_source.h"
#include "slurm/sources/rest_source.h"
#include "slurm/sources/sinfo_source.h"
#include "slurm/sources/source_choice.h"

namespace slurmlet::daemon {
namespace {

using Source = std::unique_ptr<slurm::NodeSource>;

// "" for a uid without a name.
std::string own_user() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_name;
}

std::optional<slurm::SourceKind> fixed_source(config::SlurmSource source) {
  switch (source) {
    case config::SlurmSource::kAuto:
      return std::nullopt;
    case config::SlurmSource::kCli:
      return slurm::SourceKind::kCli;
    case config::SlurmSource::kRest:
      return slurm::SourceKind::kRest;
    case config::SlurmSource::kFeed:
      return slurm::SourceKind::kFeed;
  }
  return std::nullopt;
}

Source make_sinfo(const config::SlurmSettings& slurm) {
  return std::make_unique<slurm::SinfoSource>(
      slurm::SinfoSettings{slurm.conf, slurm.bin_dir, slurm.command_timeout},
      std::make_unique<slurm::ProcessRunner>());
}

Source make_feed(const std::string& directory, const SourceContext& context) {
  slurm::FeedSettings feed;
  feed.directory = directory;
  feed.cluster = context.cluster;
  return std::make_unique<slurm::FeedSource>(std::move(feed),
                                             std::make_unique<slurm::ProcessRunner>());
}

Source make_rest(const std::string& url, const config::SlurmSettings& slurm,
                 const SourceContext& context) {
  const auto access = std::make_shared<RestAccess>(slurm, url, context.clock);
  slurm::RestSettings rest;
  rest.server.url = url;
  rest.user = slurm.rest_user;
  rest.own_user = own_user();
  rest.timeout = slurm.command_timeout;
  auto make_client = [access, &first = context.client]() -> Result<std::unique_ptr<http::Client>> {
    if (const Status ready = access->refresh(); !ready) {
      return ready.error();
    }
    return http::make_sibling(first, [access] {
      (void)access->refresh();
      return access->credentials();
    });
  };
  return std::make_unique<slurm::RestSource>(std::move(rest), std::move(make_client),
                                             [access] { return access->token(); });
}

Source make_source(const slurm::SourceOption& option, const config::SlurmSettings& slurm,
                   const SourceContext& context) {
  switch (option.kind) {
    case slurm::SourceKind::kFeed:
      return make_feed(option.where, context);
    case slurm::SourceKind::kRest:
      return make_rest(option.where, slurm, context);
    case slurm::SourceKind::kCli:
      break;
  }
  return make_sinfo(slurm);
}

}  // namespace

Source make_node_source(const config::Settings& settings, const SourceContext& context) {
  const config::SlurmSettings& slurm = settings.slurm;
  const auto options =
      slurm::choose_sources({fixed_source(slurm.source), slurm.rest_url, slurm.feed,
                             slurm::find_program("sinfo", slurm.bin_dir),
                             slurm::existing_sockets(slurm::usual_rest_sockets())});
  log::info(slurm::describe(options.front()));
  std::vector<Source> sources;
  sources.reserve(options.size());
  for (const auto& option : options) {
    sources.push_back(make_source(option, slurm, context));
  }
  if (sources.size() == 1) {
    return std::move(sources.front());
  }
  return std::make_unique<slurm::AutoSource>(
      std::move(sources), [](const std::string& change) { log::warning(change); });
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
