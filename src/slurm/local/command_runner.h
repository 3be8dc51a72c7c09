#pragma once

// The face of base/command.h that the step objects of this component need, so that tests can answer
// in the place of a program. Same contract as Command: one command at a time, never blocks, killed
// with its process group at its deadline. Not thread-safe.

#include <vector>

#include "base/command.h"

namespace slurmlet::slurm {

class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  virtual Status start(const CommandSpec& spec, SteadyTime now) = 0;
  virtual bool running() const = 0;
  virtual SteadyTime deadline() const = 0;
  virtual std::vector<int> wake_fds() const = 0;
  virtual bool poll(SteadyTime now, CommandOutput& output) = 0;
};

class ProcessRunner final : public CommandRunner {
 public:
  Status start(const CommandSpec& spec, SteadyTime now) override {
    return command_.start(spec, now);
  }
  bool running() const override { return command_.running(); }
  SteadyTime deadline() const override { return command_.deadline(); }
  std::vector<int> wake_fds() const override { return command_.wake_fds(); }
  bool poll(SteadyTime now, CommandOutput& output) override { return command_.poll(now, output); }

 private:
  Command command_;
};

}  // namespace slurmlet::slurm
