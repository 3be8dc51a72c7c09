#include "host/usage.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "base/detached_task.h"
#include "base/file.h"
#include "base/text.h"
#include "host/meminfo.h"

namespace slurmlet::host {
namespace {

// CPU time has ticks of 10 ms, so a rate over less than this is imprecise.
constexpr Duration kShortestSample = std::chrono::seconds{1};
// /proc/stat has a column for every interrupt of the machine.
constexpr std::size_t kMaxStatBytes = std::size_t{4} << 20;

std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view text) {
  return parse_int<std::uint64_t>(value_behind(key, text));
}

bool read_memory(std::string_view meminfo, node::Usage& usage) {
  const auto bytes = [meminfo](std::string_view key) {
    return static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, meminfo_bytes(meminfo, key).value_or(0)));
  };
  usage.memory_total = bytes("MemTotal");
  usage.memory_rss = bytes("AnonPages");
  if (usage.memory_total == 0 || usage.memory_rss == 0) {
    return false;
  }
  usage.memory_used = usage.memory_rss + bytes("Cached") + bytes("Buffers") + bytes("SwapCached");
  usage.memory_working_set =
      usage.memory_used - std::min(usage.memory_used, bytes("Inactive(file)"));
  usage.memory_available =
      usage.memory_total - std::min(usage.memory_total, usage.memory_working_set);
  return true;
}

void read_file_system(const std::filesystem::path& path, node::Usage& usage) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) {
    return;
  }
  usage.fs_capacity = std::uint64_t{info.f_blocks} * info.f_frsize;
  usage.fs_available = std::uint64_t{info.f_bavail} * info.f_frsize;
  usage.fs_used = std::uint64_t{info.f_blocks - info.f_bfree} * info.f_frsize;
  usage.fs_inodes = info.f_files;
  usage.fs_inodes_free = info.f_ffree;
}

std::uint64_t read_pid_max(const std::filesystem::path& kernel) {
  constexpr auto kNoLimit = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest = kNoLimit;
  for (const char* name : {"pid_max", "threads-max"}) {
    lowest =
        std::min(lowest, parse_int<std::uint64_t>(read_trimmed(kernel / name)).value_or(kNoLimit));
  }
  return lowest == kNoLimit ? 0 : lowest;
}

}  // namespace

std::optional<FileSystemUsage> file_system_usage(std::filesystem::path path) {
  touches_file(path.native());
  struct statvfs info {};
  while (::statvfs(path.c_str(), &info) != 0) {
    if (errno != ENOENT || !path.has_relative_path()) {
      return std::nullopt;
    }
    path = path.parent_path();
  }
  return FileSystemUsage{static_cast<std::int64_t>(info.f_blocks * info.f_frsize),
                         static_cast<std::int64_t>(info.f_bavail * info.f_frsize),
                         static_cast<std::int64_t>(info.f_files),
                         static_cast<std::int64_t>(info.f_favail)};
}

std::optional<std::uint64_t> total_tasks(std::string_view loadavg) {
  const auto slash = loadavg.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto rest = loadavg.substr(slash + 1);
  return parse_int<std::uint64_t>(rest.substr(0, rest.find(' ')));
}

std::optional<std::uint64_t> busy_ticks(std::string_view proc_stat) {
  const auto column = words(value_behind("cpu ", proc_stat));
  if (column.size() < 4) {
    return std::nullopt;
  }
  constexpr std::size_t kIdle = 3;
  constexpr std::size_t kIoWait = 4;
  constexpr std::size_t kGuest = 8;
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < std::min(column.size(), kGuest); ++i) {
    const auto ticks = parse_int<std::uint64_t>(column[i]);
    if (!ticks) {
      return std::nullopt;
    }
    busy += i == kIdle || i == kIoWait ? 0 : *ticks;
  }
  return busy;
}

UsageReader::UsageReader(Paths paths, std::filesystem::path file_system)
    : paths_(std::move(paths)),
      file_system_(std::move(file_system)),
      ticks_per_second_(static_cast<double>(::sysconf(_SC_CLK_TCK))) {}

std::optional<node::Usage> UsageReader::read(Now now) {
  node::Usage usage;
  usage.time = now.wall;
  const auto stat = read_file(paths_.proc / "stat", kMaxStatBytes);
  const auto busy = stat ? busy_ticks(*stat) : std::nullopt;
  if (!busy || !read_memory(read_trimmed(paths_.proc / "meminfo"), usage)) {
    return std::nullopt;
  }
  usage.cpu_seconds = static_cast<double>(*busy) / ticks_per_second_;
  measure_cores(usage, now.steady);
  if (!booted_) {  // read once, since the kernel's value moves with the clock
    if (const auto seconds = number_behind("btime ", *stat)) {
      booted_ = WallTime{std::chrono::seconds{*seconds}};
    }
  }
  usage.booted = booted_.value_or(WallTime{});
  const std::string vmstat = read_trimmed(paths_.proc / "vmstat");
  usage.page_faults = number_behind("pgfault ", vmstat).value_or(0);
  usage.major_page_faults = number_behind("pgmajfault ", vmstat).value_or(0);
  usage.processes = total_tasks(read_trimmed(paths_.proc / "loadavg")).value_or(0);
  usage.pid_max = read_pid_max(paths_.proc / "sys/kernel");
  read_file_system(file_system_, usage);
  return usage;
}

void UsageReader::measure_cores(node::Usage& usage, SteadyTime now) {
  if (!last_sample_) {
    last_sample_ = Sample{now, usage.cpu_seconds};
  } else if (now - last_sample_->at >= kShortestSample) {
    const double elapsed = std::chrono::duration<double>(now - last_sample_->at).count();
    // The counters may shrink when CPUs go offline.
    cores_ = std::max(0.0, usage.cpu_seconds - last_sample_->cpu_seconds) / elapsed;
    last_sample_ = Sample{now, usage.cpu_seconds};
  }
  usage.cpu_cores = cores_;
}

}  // namespace slurmlet::host
