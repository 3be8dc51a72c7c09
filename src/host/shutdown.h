#pragma once

// Whether the whole machine is going down, as opposed to only this service being stopped or
// restarted. Asked once, when SIGTERM has come: it decides whether the Node is left with a last
// "shutting down" or with nothing at all. Blocks for at most the time limit. Thread-safe.
//
// Two witnesses, either is enough:
//  - `systemctl is-system-running` prints "stopping" from the moment systemd has begun to stop
//    units for a shutdown (systemctl(1)). It needs D-Bus, which may be gone by then, hence
//  - /run/systemd/shutdown/scheduled, which logind writes for `shutdown`, `reboot +5` and the like
//    (USEC= due time, MODE=). A shutdown planned for later says nothing about this SIGTERM, so it
//    counts only once it is due; "dry-" modes never do.
// With neither (no systemd, or both out of reach) the answer is no.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slurmlet::host {

struct ShutdownSources {
  std::vector<std::string> command = {"systemctl", "is-system-running"};
  std::filesystem::path scheduled = "/run/systemd/shutdown/scheduled";
  Duration time_limit = std::chrono::seconds{2};  // everything stops at once: the machine is busy
};

bool system_is_stopping(const ShutdownSources& sources = {});

// Whether logind's file names a shutdown that is due at `now`. Pure.
bool is_shutdown_due(std::string_view scheduled, WallTime now);

}  // namespace slurmlet::host
