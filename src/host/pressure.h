#pragma once

// Memory, disk and PID pressure of the machine, with the kubelet's default thresholds
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/, hard eviction:
// memory.available < 100Mi, nodefs.available < 10%, nodefs.inodesFree < 5%). The kubelet has no
// default for PIDs; ours is 10 % of min(pid_max, threads-max), since a machine without free PIDs
// can start neither a job step nor an ssh session.
//
// Hysteresis keeps a machine at a threshold from rewriting its Node every tick. For the same reason
// `detail` names the figure without its value.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "host/host_paths.h"
#include "host/usage.h"
#include "node/facts.h"

namespace slurmlet::host {

struct Pressures {
  std::optional<node::Pressure> memory;  // nothing: could not be read
  std::optional<node::Pressure> pid;
  bool operator==(const Pressures&) const = default;
};

// Whether the resource is low now, given whether it was before. Pure.
bool is_memory_low(bool was_low, std::int64_t available_bytes);
bool is_disk_low(bool was_low, const FileSystemUsage& usage);
bool are_inodes_low(bool was_low, const FileSystemUsage& usage);
bool are_pids_low(bool was_low, std::int64_t tasks, std::int64_t limit);

// Reads the figures by four system calls on open descriptors. Not thread-safe.
class PressureSampler {
 public:
  explicit PressureSampler(Paths paths);
  Pressures sample();
  // `usage`: of the state directory, which may hang, so it is read elsewhere.
  std::optional<node::Pressure> disk(const std::optional<FileSystemUsage>& usage);

 private:
  // A small /proc file, opened once, or again after a failure. "" = unreadable.
  class ProcFile {
   public:
    explicit ProcFile(std::filesystem::path path) : path_(std::move(path)) {}
    std::string read();

   private:
    std::filesystem::path path_;
    UniqueFd fd_;
  };

  std::optional<node::Pressure> memory();
  std::optional<node::Pressure> pid();

  std::filesystem::path state_dir_;
  ProcFile meminfo_;
  ProcFile loadavg_;
  ProcFile pid_max_;
  ProcFile threads_max_;
  bool memory_low_ = false;
  bool disk_low_ = false;
  bool inodes_low_ = false;
  bool pids_low_ = false;
};

}  // namespace slurmlet::host
