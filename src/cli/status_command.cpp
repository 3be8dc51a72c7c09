#include "cli/status_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "cli/print.h"
#include "config/duration.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNotHealthy = 1;
constexpr int kBadCommandLine = 2;
constexpr int kNotRunning = 3;
constexpr Duration kQueryInterval = milliseconds{250};
constexpr mode_t kForAll = 0644;

bool is_registered(const Result<status::DaemonStatus>& status) {
  return status && status->registered && status->lease_held;
}

std::string why_not(const Result<status::DaemonStatus>& status) {
  if (!status) {
    return status.error().message;
  }
  return status->problem.empty() ? status->summary : status->problem;
}

int write_sentinel(const std::string& path) {
  if (path.empty()) {
    return 0;
  }
  if (const Status written = write_file_atomic(path, "success\n", kForAll); !written) {
    log::error("--sentinel " + path + ": " + written.error().message);
    return kNotHealthy;
  }
  return 0;
}

}  // namespace

int run_status(const config::Settings& settings, const config::ParsedCommandLine& command) {
  auto client = status::DaemonClient::make(settings);
  if (!client) {
    log::error(client.error().message);
    return kNotRunning;
  }
  // While it waits for a silent API server before it has a credential, it answers late.
  const auto status = client->query(seconds{12});
  if (!status) {
    log::error(status.error().message);
    return status.error().code == Code::kTimeout ? kNotHealthy : kNotRunning;
  }
  print(command.options.at("output") == "json" ? status->json : status->text);
  return status->healthy ? 0 : kNotHealthy;
}

int run_wait_registered(const config::Settings& settings,
                        const config::ParsedCommandLine& command) {
  const std::string& limit = command.options.at("timeout");
  const auto timeout = config::parse_duration(limit);
  if (!timeout || *timeout < Duration::zero()) {
    log::error(fmt::format("--timeout is \"{}\"; it must be a duration such as 5m or 300", limit));
    return kBadCommandLine;
  }
  auto client = status::DaemonClient::make(settings);
  if (!client) {
    log::error(client.error().message);
    return kBadCommandLine;
  }
  const SteadyTime deadline = std::chrono::steady_clock::now() + *timeout;
  std::string last, reported;
  while (true) {
    const auto status = client->query();
    if (is_registered(status)) {
      print("Node " + status->node + " is registered\n");
      return write_sentinel(command.options.at("sentinel"));
    }
    std::string why = why_not(status);
    if (std::chrono::steady_clock::now() >= deadline) {
      log::error(fmt::format("the Node is not registered after {}: {}",
                             config::format_duration(*timeout), why));
      return kNotHealthy;
    }
    // Twice: between the bootstrap and the rest the daemon does not answer for a moment.
    if (why == last && why != reported) {
      reported = why;
      log::info("waiting: " + reported);
    }
    last = std::move(why);
    client->pause(kQueryInterval);
  }
}

}  // namespace slurmlet::cli
