#pragma once

// Whether the machine is shutting down, rather than only this service. Called once, after SIGTERM:
// it decides whether the Node gets a last "shutting down". Blocks up to the time limit.
// Thread-safe.
//
// Either of these is enough:
//  - `systemctl is-system-running` prints "stopping" once systemd stops units for a shutdown
//    (systemctl(1)). It needs D-Bus, which may have stopped already.
//  - /run/systemd/shutdown/scheduled, which logind writes for `shutdown`, `reboot +5` and the like
//    (USEC= due time, MODE=). A shutdown planned for later says nothing about this SIGTERM, so it
//    counts only once it is due; "dry-" modes never do.
// With neither (no systemd, or both failed) the answer is no.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slurmlet::host {

struct ShutdownSources {
  std::vector<std::string> command = {"systemctl", "is-system-running"};
  std::filesystem::path scheduled = "/run/systemd/shutdown/scheduled";
  Duration time_limit = std::chrono::seconds{2};  // a machine that shuts down is busy
};

bool system_is_stopping(const ShutdownSources& sources = {});

// Whether logind's file has a shutdown that is due at `now`. Pure.
bool is_shutdown_due(std::string_view scheduled, WallTime now);

}  // namespace slurmlet::host
