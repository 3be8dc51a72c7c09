#pragma once

// The version of the installed slurmd, from `slurmd -V` (slurmd(8); needs no slurm.conf and no
// privilege, 2-5 ms). Asked for rarely: at the start and when slurmd was started anew. Never
// blocks. Not thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "base/command.h"

namespace slurmlet::slurm {

// Where the program may be, in order: `configured` if set, slurmd in `bin_dir` or the sbin beside
// it, in PATH, or in the usual sbin directories. The program of the running process is not used:
// what /proc/PID/exe names may be gone, or not ours to run.
std::vector<std::string> slurmd_programs(const std::string& configured, const std::string& bin_dir);

class SlurmdVersion {
 public:
  explicit SlurmdVersion(std::unique_ptr<CommandRunner> runner) : runner_(std::move(runner)) {}

  void ask(std::vector<std::string> programs, SteadyTime now);
  // Asked, and no answer yet.
  bool running() const { return runner_->running(); }
  // True when the version has just been learnt.
  bool step(SteadyTime now);
  SteadyTime deadline() const { return runner_->running() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }
  const std::string& version() const { return version_; }

 private:
  std::unique_ptr<CommandRunner> runner_;
  std::string version_;
};

}  // namespace slurmlet::slurm
