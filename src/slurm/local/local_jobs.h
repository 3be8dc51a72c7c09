#pragma once

// Jobs on this machine, without any query: slurmd keeps one socket per job step in its spool
// directory, NODENAME_JOBID.STEPID or NODENAME_JOBID.STEPID.HETCOMPONENT (src/common/stepd_api.c).
// A socket outlives a crashed slurmstepd, so each is confirmed by a living process, whose title is
// "slurmstepd: [JOBID.STEP]". Allocated CPUs come from the cpusets of Slurm's cgroup plugins
// (ConstrainCores); the affinity of a task is where it runs, not what its job was given. One
// directory read while nothing changes; all processes when a step is new.
//
// Not thread-safe. Reads only.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/trusted_file.h"
#include "node/facts.h"

namespace slurmlet::slurm {

struct StepSocket {
  std::string node;
  std::uint32_t job = 0;
  std::string step;  // "0", "4294967291" (batch), "0.1" of a heterogeneous job
  bool operator==(const StepSocket&) const = default;
};

// Nothing when the name is not that of a step's socket.
std::optional<StepSocket> parse_step_socket(std::string_view name);

// Names in the spool directory that come and go with jobs: step sockets and jobNNNNN directories.
bool is_job_entry(std::string_view name);

// The job in slurmstepd's title: "slurmstepd: [9.batch]" → 9, "slurmstepd: [12+1.0]" → 12.
std::optional<std::uint32_t> job_of_title(std::string_view title);

struct LocalJobsPlaces {
  std::string spool_dir;
  std::string node_name;  // "" = sockets of any node
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  // Where Slurm counts cores as CPUs a job's cpuset holds all threads of its cores. Nothing where
  // it is not known what Slurm counts.
  std::optional<std::int64_t> threads_per_cpu = 1;
  TrustedUsers users = {};  // who starts slurmstepd
  bool operator==(const LocalJobsPlaces&) const = default;
};

class LocalJobsReader {
 public:
  explicit LocalJobsReader(LocalJobsPlaces places) : places_(std::move(places)) {}

  // `entries` are those of the spool directory, which its reader must not wait for: it may lie on a
  // file system that hangs. Nothing when it cannot be read. allocated_cpus is there when every job
  // has one and Slurm's way to count is known.
  std::optional<node::LocalJobs> read(const Result<std::vector<std::string>>& entries);

 private:
  using Job = std::uint32_t;
  struct Processes {
    std::vector<int> pids;  // slurmstepd processes of the job
    int searches = 0;       // made in vain
  };
  std::map<std::string, Job> sockets_among(const std::vector<std::string>& names) const;
  void update_jobs(const std::map<std::string, Job>& sockets);
  void search_processes();
  bool may_be_hidden(const Processes& processes) const;
  bool is_step_of(int pid, Job job) const;
  std::optional<std::int64_t> memory_limit_of(const std::vector<std::string>& cgroups) const;
  static std::set<int> cpuset_of(const std::vector<std::string>& cgroups);
  std::vector<std::string> cgroup_directories(Job job) const;

  LocalJobsPlaces places_;
  std::map<std::string, Job> sockets_;  // as of the last read
  std::map<Job, Processes> jobs_;       // every job that has a socket
  bool processes_hidden_ = false;       // /proc does not show other users' processes
  bool step_starting_ = false;          // a slurmstepd has not set its title yet
};

}  // namespace slurmlet::slurm
