#pragma once

// Answers in the place of a program: the test looks at what was started and says how it ended. The
// deadline is kept as Command keeps it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/command.h"

namespace slurmlet::slurm {

// Shared between the test and the runner that the object under test owns.
struct FakeProgram {
  std::vector<CommandSpec> started;
  std::vector<SteadyTime> started_at;
  std::optional<Error> start_error;
  std::optional<CommandOutput> end;  // how the running command ends, at the next poll
  bool running = false;
  int killed = 0;
};

class FakeRunner final : public CommandRunner {
 public:
  explicit FakeRunner(FakeProgram& program) : program_(program) {}

  Status start(const CommandSpec& spec, SteadyTime now) override {
    if (program_.start_error) {
      return *program_.start_error;
    }
    program_.started.push_back(spec);
    program_.started_at.push_back(now);
    program_.running = true;
    deadline_ = now + spec.timeout;
    return {};
  }
  bool running() const override { return program_.running; }
  SteadyTime deadline() const override { return deadline_; }
  std::vector<int> wake_fds() const override {
    return program_.running ? std::vector<int>{77} : std::vector<int>{};
  }
  bool poll(SteadyTime now, CommandOutput& output) override {
    if (!program_.running) {
      return false;
    }
    if (program_.end) {
      output = *std::exchange(program_.end, std::nullopt);
    } else if (now >= deadline_) {
      output = {};
      output.timed_out = true;
      output.signal = 9;
      ++program_.killed;
    } else {
      return false;
    }
    program_.running = false;
    return true;
  }

 private:
  FakeProgram& program_;
  SteadyTime deadline_{};
};

}  // namespace slurmlet::slurm
