#include "daemon/reload.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/try.h"
#include "daemon/node_identity.h"
#include "daemon/slurm_setup.h"
#include "host/file_system.h"
#include "host/host_paths.h"
#include "slurm/local/slurm_users.h"
#include "slurm/local/slurmd_process.h"

namespace slurmlet::daemon {
namespace {

// Longer, and people are told.
constexpr Duration kPatience = std::chrono::seconds{2};
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

void Reload::begin(Now now) {
  service_.reloading(now);
  const int hanging = side_calls_under_way();
  if (hanging <= kMostUnderWay) {
    // One that waits is given up: the configuration may name other files by now.
    reading_ = {};
    waits_for_.clear();
    if (reading_.begin([load = load_] { return prepare(load); }, now.steady, kPatience)) {
      return;
    }
  }
  log::error(
      fmt::format("SIGHUP: {} file operations hang, so the configuration is not reloaded; "
                  "check the file systems that do not answer, then restart slurmlet",
                  hanging));
  service_.ready(now);
}

std::optional<Outcome> Reload::outcome(Signals& signals, Now now) {
  if (const auto asked = signals.take_outcome(service_)) {
    if (*asked == Outcome::kStopped) {
      return asked;
    }
    begin(now);
  }
  if (auto fresh = reading_.take()) {
    const bool waited = !std::exchange(waits_for_, "").empty();
    if (*fresh) {
      next_ = **std::move(fresh);
      if (waited) {
        service_.reloading(now);
      }
      return Outcome::kReload;
    }
    log::error("SIGHUP: the new configuration is rejected; the old one stays in use");
    for (const auto line : split(fresh->error().message, '\n')) {
      log::error(std::string{line});
    }
    service_.ready(now);
  } else if (reading_.late(now.steady) && waits_for_.empty()) {
    waits_for_ = reading_.problem();
    log::warning("SIGHUP: " + waits_for_ + "; the configuration is reloaded once it answers");
    service_.ready(now);
  }
  return std::nullopt;
}

config::Settings Reload::take() { return *std::exchange(next_, std::nullopt); }

}  // namespace slurmlet::daemon
