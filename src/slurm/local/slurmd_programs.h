#pragma once

// What two programs report of slurmd. Neither ever blocks; not thread-safe.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"

namespace slurmlet::slurm {

// "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\n…" →
// "slurmd.service: failed (exit-code 1)"; "" when there is no such unit, or nothing to say.
std::string describe_unit(std::string_view unit, std::string_view properties);

// What systemd says of slurmd's unit when slurmd does not run: `systemctl show` (systemctl(1)),
// once for each absence. Only where systemd is the init system.
class SlurmdUnit {
 public:
  // `systemd_dir` exists while systemd is the init system (sd_booted(3)). Without a runner nothing
  // is ever run.
  SlurmdUnit(std::unique_ptr<CommandRunner> runner, std::string systemd_dir)
      : runner_(std::move(runner)), systemd_dir_(std::move(systemd_dir)) {}

  // slurmd is down: runs it unless that was done since the last reset().
  void run_once(const std::string& unit, SteadyTime now);
  // slurmd is back: discards what systemd reported.
  void reset();
  void step(SteadyTime now);
  SteadyTime deadline() const { return running() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const { return running() ? runner_->wake_fds() : std::vector<int>{}; }
  const std::string& detail() const { return detail_; }

 private:
  bool running() const { return runner_ && runner_->running(); }

  std::unique_ptr<CommandRunner> runner_;
  std::string systemd_dir_;
  std::string unit_;
  std::string detail_;
  bool has_run_ = false;
};

// Where the program slurmd may be, in order: in `bin_dir` or the sbin beside it, in PATH, or in the
// usual sbin directories. The program of the running process is not used: what /proc/PID/exe names
// may be gone, or not ours to run.
std::vector<std::string> slurmd_programs(const std::string& bin_dir);

// The output of `slurmd -V`: "slurm-wlm 22.05.8\n" → "22.05.8", "slurm 25.11.0" → "25.11.0"; ""
// when it is neither.
std::string parse_slurmd_version(std::string_view text);

// The version of the installed slurmd, from `slurmd -V` (slurmd(8); needs no slurm.conf and no
// privilege, 2-5 ms). Asked for rarely: at the start and when slurmd was started anew.
class SlurmdVersion {
 public:
  explicit SlurmdVersion(std::unique_ptr<CommandRunner> runner) : runner_(std::move(runner)) {}

  void query(std::vector<std::string> programs, SteadyTime now);
  // No answer yet.
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
