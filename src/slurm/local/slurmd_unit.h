#pragma once

// What systemd says of slurmd's unit when slurmd does not run: `systemctl show` (systemctl(1)),
// once for each absence. Only where systemd is the init system. Never blocks; not thread-safe.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"

namespace slurmlet::slurm {

// "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=1\n…" →
// "slurmd.service: failed (exit-code 1)"; "" when there is no such unit, or nothing to say.
std::string describe_unit(std::string_view unit, std::string_view properties);

class SlurmdUnit {
 public:
  // `systemd_dir` exists while systemd is the init system (sd_booted(3)). Without a runner nothing
  // is ever asked.
  SlurmdUnit(std::unique_ptr<CommandRunner> runner, std::string systemd_dir)
      : runner_(std::move(runner)), systemd_dir_(std::move(systemd_dir)) {}

  // slurmd is away: asks unless that was done since the last reset().
  void ask_once(const std::string& unit, SteadyTime now);
  // slurmd is back, and what was said of it is over.
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
  bool asked_ = false;
};

}  // namespace slurmlet::slurm
