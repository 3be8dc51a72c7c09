#pragma once

// The queue of Slurm by one squeue per interval, once Slurm is known to show us all users' jobs
// (shown_jobs.h). A step object, never blocks, not thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/command.h"
#include "operator/machines/shown_jobs.h"
#include "slurm/answers/pending.h"

namespace slurmlet::op {

class QueuePoll {
 public:
  QueuePoll(slurm::ClientSettings client, slurm::SlurmIdentity self, Duration interval,
            std::unique_ptr<CommandRunner> runner)
      : client_(client),
        shown_(std::move(client), std::move(self)),
        interval_(interval),
        runner_(std::move(runner)) {}

  bool is_due(SteadyTime now) const { return !runner_->running() && now >= due_; }
  void start(SteadyTime now);
  // The answer, once; problem() says why it is nothing.
  std::optional<slurm::JobQueue> poll(SteadyTime now);
  const std::string& problem() const { return problem_; }
  void skip(SteadyTime now) { due_ = now + interval_; }
  void soon(SteadyTime at) { due_ = std::min(due_, at); }
  SteadyTime next() const { return runner_->running() ? runner_->deadline() : due_; }
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  void begin(SteadyTime now);

  slurm::ClientSettings client_;
  ShownJobs shown_;
  bool asks_shown_ = false;  // what runs is shown_'s
  Duration interval_;
  std::unique_ptr<CommandRunner> runner_;
  SteadyTime due_{};
  std::string problem_;
};

}  // namespace slurmlet::op
