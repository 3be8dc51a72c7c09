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
constexpr Duration kRestart = seconds{3};  // the daemon's, and from its bootstrap to the rest
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

Result<config::Milliseconds> wait_limit(const config::ParsedCommandLine& command) {
  const std::string& text = command.options.at("timeout");
  const auto limit = config::parse_duration(text);
  if (!limit || *limit < Duration::zero()) {
    return Error{Code::kInvalid, fmt::format("--timeout is \"{}\"; it must be a duration such as "
                                             "5m or 300",
                                             text)};
  }
  return *limit;
}

int run_wait_registered(const config::Settings& settings,
                        const config::ParsedCommandLine& command) {
  const auto timeout = wait_limit(command);
  if (!timeout) {
    log::error(timeout.error().message);
    return kBadCommandLine;
  }
  auto client = status::DaemonClient::make(settings);
  if (!client) {
    log::error(client.error().message);
    return kBadCommandLine;
  }
  const SteadyTime deadline = std::chrono::steady_clock::now() + *timeout;
  std::string last, reported;
  SteadyTime changed_at{};
  while (true) {
    const auto status = client->query();
    if (is_registered(status)) {
      print("Node " + status->node + " is registered\n");
      return write_sentinel(command.options.at("sentinel"));
    }
    std::string why = why_not(status);
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now >= deadline) {
      log::error(fmt::format("the Node is not registered after {}: {}",
                             config::format_duration(*timeout), why));
      return kNotHealthy;
    }
    if (why != last) {
      last = std::move(why);
      changed_at = now;
    }
    const bool is_silent = !status && status.error().code == Code::kUnavailable;
    if (last != reported && now - changed_at >= (is_silent ? kRestart : kQueryInterval)) {
      reported = last;
      log::info("waiting: " + reported);
    }
    client->pause(kQueryInterval);
  }
}

}  // namespace slurmlet::cli
