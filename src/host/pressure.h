#pragma once

// Memory, disk and PID pressure of the machine, with the thresholds of a kubelet that nobody
// configured (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/, hard
// eviction: memory.available < 100Mi, nodefs.available < 10%, nodefs.inodesFree < 5%). The kubelet
// has no default for PIDs; here less than 10 % of min(pid_max, threads-max) left counts, as a
// machine without PIDs can no longer start a job step or an ssh session.
//
// A pressure ends only some way above where it began, so that a machine that sits on a threshold
// does not rewrite its Node every tick. `detail` says which figure, never how much.

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
  std::optional<node::Pressure> memory;  // missing: could not be read
  std::optional<node::Pressure> pid;
  bool operator==(const Pressures&) const = default;
};

// The rules, pure: whether the resource is low now, given whether it was before.
bool is_memory_low(bool was_low, std::int64_t available_bytes);
bool is_disk_low(bool was_low, const FileSystemUsage& usage);
bool are_inodes_low(bool was_low, const FileSystemUsage& usage);
bool are_pids_low(bool was_low, std::int64_t tasks, std::int64_t limit);

// Reads the figures: four system calls a sample, on descriptors that stay open. Not thread-safe.
class PressureSampler {
 public:
  explicit PressureSampler(Paths paths);
  Pressures sample();
  // Of the state directory's, which may hang, so that it is read elsewhere.
  std::optional<node::Pressure> disk(const std::optional<FileSystemUsage>& usage);

 private:
  // A small /proc file, opened once. "" when it cannot be read; tried anew each time.
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
