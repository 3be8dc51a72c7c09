#pragma once

// What the readers of facts are given; the rest is found on the machine.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/trusted_file.h"
#include "host/gpus.h"
#include "host/machine.h"
#include "host/pressure.h"

namespace slurmlet::sync {

struct FactsOptions {
  host::Paths paths;
  std::string system_uuid;  // read before: its file is in the state directory, which may hang
  Duration machine_interval = std::chrono::minutes{5};
  Duration tick = std::chrono::minutes{1};  // pressures: not a matter of seconds here
  Duration not_ready_grace = std::chrono::seconds{15};
  // For the first reading, before slurm.conf names SlurmUser. Like Discover.
  std::function<TrustedUsers()> slurm_users = [] { return TrustedUsers{}; };
  std::function<host::GpuReading(const host::Paths&, const std::vector<std::string>&)> read_gpus =
      host::read_gpus_and_files;
  std::function<std::optional<host::FileSystemUsage>(const std::filesystem::path&)> disk_usage =
      host::file_system_usage;
  Duration first_patience = std::chrono::seconds{2};  // with slurm.conf
  Duration patience = std::chrono::milliseconds{100};
  Duration reading_limit = std::chrono::seconds{5};
};

}  // namespace slurmlet::sync
