#include "daemon/reload.h"

#include <fmt/format.h>
#include <signal.h>

#include <utility>

#include "base/log.h"
#include "daemon/node_identity.h"
#include "daemon/slurm_setup.h"
#include "host/host_paths.h"
#include "host/usage.h"
#include "slurm/local/slurm_users.h"
#include "slurm/local/slurmd_process.h"

namespace slurmlet::daemon {
namespace {

// Longer, and people are told.
constexpr Duration kPatience = std::chrono::seconds{2};
// With the reading, before the life goes on: its next call may take ten seconds.
constexpr Duration kMoment = std::chrono::milliseconds{100};
// Each reload that waits holds a thread until its file answers. So many file operations that hang
// leave enough for the life that runs.
constexpr int kMostUnderWay = 16;

// With what the next life reads before its first Lease and what it needs of Slurm.
Result<config::Settings> prepare(const Reload::Load& load) {
  auto settings = TRY(load());
  const auto identity = TRY(identify(settings, StateUse::kLook));
  touches_file(settings.state_dir);
  (void)host::file_system_usage(settings.state_dir);
  const auto seen = slurm::running_slurmds(host::Paths{}.proc, slurm::usual_slurm_users());
  (void)discover_slurm(settings, identity.hostname, identity.policy.node_name,
                       seen ? *seen : std::vector<slurm::SlurmdSeen>{});
  return settings;
}

}  // namespace

// False where that would take a thread too many.
bool Reload::begin(Now now) {
  SideCall<Result<config::Settings>> reading;
  if (side_calls_under_way() > kMostUnderWay ||
      !reading.begin([load = load_] { return prepare(load); }, now.steady, kPatience)) {
    return false;
  }
  // One that waits is given up: the configuration may name other files by now.
  reading_ = std::move(reading);
  waits_.clear();
  return true;
}

std::optional<Outcome> Reload::take_reading(Result<config::Settings> read, Now now) {
  if (read) {
    next_ = *std::move(read);
    if (service_.is_ready()) {
      service_.reloading(now);
    }
    return Outcome::kReload;
  }
  log::error("SIGHUP: the new configuration is rejected; the old one stays in use");
  log::error_lines(read.error().message);
  service_.ready(now);
  return std::nullopt;
}

std::optional<Outcome> Reload::outcome(Signals& signals, Now now) {
  Duration moment{};
  if (const auto number = signals.take()) {
    if (*number != SIGHUP) {
      service_.stopping();
      log::info(*number == SIGTERM ? "SIGTERM: stopping" : "SIGINT: stopping");
      return Outcome::kStopped;
    }
    service_.reloading(now);
    is_second_ = false;
    moment = kMoment;
    if (!begin(now)) {
      log::error(
          fmt::format("SIGHUP: {} file operations hang, so the configuration is not reloaded; "
                      "check the file systems that do not answer, then reload slurmlet again",
                      side_calls_under_way()));
      service_.ready(now);
    }
  }
  if (auto read = reading_.take(moment)) {
    const bool waited = !std::exchange(waits_, "").empty();
    // After hours it may be another configuration.
    if (waited && !std::exchange(is_second_, true) && begin(now)) {
      return std::nullopt;
    }
    return take_reading(*std::move(read), now);
  }
  if (reading_.late(now.steady) && waits_.empty()) {
    waits_ = reading_.problem();
    log::warning("SIGHUP: " + waits_ + "; the configuration is reloaded once it answers");
    service_.ready(now);
  }
  return std::nullopt;
}

config::Settings Reload::take() { return *std::exchange(next_, std::nullopt); }

}  // namespace slurmlet::daemon
