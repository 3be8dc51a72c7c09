#include "host/pressure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "host/meminfo.h"

namespace slurmlet::host {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr std::int64_t kMemoryLow = 100 * kMiB;
constexpr std::int64_t kMemoryRecovered = 200 * kMiB;

struct PercentFree {
  int low;
  int recovered;
};
constexpr PercentFree kDisk{10, 12};
constexpr PercentFree kInodes{5, 6};
constexpr PercentFree kPids{10, 15};

bool is_low(bool was_low, std::int64_t available, std::int64_t total, PercentFree limits) {
  const double percent = 100.0 * static_cast<double>(available) / static_cast<double>(total);
  return percent < (was_low ? limits.recovered : limits.low);
}

}  // namespace

bool is_memory_low(bool was_low, std::int64_t available_bytes) {
  return available_bytes < (was_low ? kMemoryRecovered : kMemoryLow);
}

bool is_disk_low(bool was_low, const FileSystemUsage& usage) {
  return usage.total_bytes > 0 && is_low(was_low, usage.available_bytes, usage.total_bytes, kDisk);
}

bool are_inodes_low(bool was_low, const FileSystemUsage& usage) {
  return usage.total_inodes > 0 &&
         is_low(was_low, usage.available_inodes, usage.total_inodes, kInodes);
}

bool are_pids_low(bool was_low, std::int64_t tasks, std::int64_t limit) {
  return limit > 0 && is_low(was_low, limit - tasks, limit, kPids);
}

PressureSampler::PressureSampler(Paths paths)
    : state_dir_(std::move(paths.state_dir)),
      meminfo_(paths.proc / "meminfo"),
      loadavg_(paths.proc / "loadavg"),
      pid_max_(paths.proc / "sys/kernel/pid_max"),
      threads_max_(paths.proc / "sys/kernel/threads-max") {}

std::string PressureSampler::ProcFile::read() {
  if (!fd_) {
    fd_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  }
  // MemAvailable is the third line of meminfo, so its head is enough.
  std::array<char, 512> buffer{};
  const ssize_t n = fd_ ? ::pread(fd_.get(), buffer.data(), buffer.size(), 0) : -1;
  if (n <= 0) {
    fd_.reset();
    return {};
  }
  return {buffer.data(), static_cast<std::size_t>(n)};
}

std::optional<node::Pressure> PressureSampler::memory() {
  const auto available = meminfo_bytes(meminfo_.read(), "MemAvailable");
  if (!available) {
    return std::nullopt;
  }
  memory_low_ = is_memory_low(memory_low_, *available);
  return node::Pressure{memory_low_, memory_low_ ? "memory available fell below 100Mi"
                                                 : "memory available is sufficient"};
}

std::optional<node::Pressure> PressureSampler::disk(const std::optional<FileSystemUsage>& usage) {
  if (!usage) {
    return std::nullopt;
  }
  disk_low_ = is_disk_low(disk_low_, *usage);
  inodes_low_ = are_inodes_low(inodes_low_, *usage);
  const std::string where = " on the file system of " + state_dir_.string();
  std::vector<std::string> what;
  if (disk_low_) {
    what.emplace_back("space available" + where + " fell below 10%");
  }
  if (inodes_low_) {
    what.emplace_back("free inodes" + where + " fell below 5%");
  }
  if (what.empty()) {
    return node::Pressure{false, "space and inodes available" + where + " are sufficient"};
  }
  return node::Pressure{true, join(what, "; ")};
}

std::optional<node::Pressure> PressureSampler::pid() {
  const auto tasks = total_tasks(loadavg_.read());
  const auto pid_max = parse_int<std::int64_t>(trim(pid_max_.read()));
  const auto threads_max = parse_int<std::int64_t>(trim(threads_max_.read()));
  if (!tasks || (!pid_max && !threads_max)) {
    return std::nullopt;
  }
  constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
  const std::int64_t limit = std::min(pid_max.value_or(kNoLimit), threads_max.value_or(kNoLimit));
  pids_low_ = are_pids_low(pids_low_, static_cast<std::int64_t>(*tasks), limit);
  return node::Pressure{pids_low_, pids_low_ ? "process IDs available fell below 10%"
                                             : "process IDs available are sufficient"};
}

Pressures PressureSampler::sample() { return {memory(), pid()}; }

}  // namespace slurmlet::host
