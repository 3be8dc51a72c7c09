#pragma once

// Lists the jobs on the nodes of deleted Machines, by one squeue for all after each dump, once
// Slurm is known to show us all users' jobs (shown_jobs.h); requeues or cancels them, one command
// at a time. A step object, never blocks, not thread-safe.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command.h"
#include "operator/machines/shown_jobs.h"
#include "operator/rules/machine_rules.h"
#include "slurm/answers/squeue.h"

namespace slurmlet::op {

// How long the answer of squeue is valid.
inline constexpr Duration kJobsFresh = std::chrono::seconds{3};

// A command that ends a job, and its result.
struct JobCommand {
  enum class Kind : std::uint8_t { kRequeue, kCancel };
  Kind kind;
  std::string job;
  std::string machine;       // that is being deleted
  std::string failure = {};  // "" = done
};

class SlurmJobs {
 public:
  SlurmJobs(slurm::ClientSettings client, slurm::SlurmIdentity self,
            std::unique_ptr<CommandRunner> runner)
      : client_(client), shown_(std::move(client), std::move(self)), runner_(std::move(runner)) {}

  // Discards jobs and pending commands; want() must follow for all nodes.
  void new_dump();
  void want(const std::string& node) { wanted_.insert(node); }
  // The jobs on a wanted node, by a squeue that began after the last dump; nothing if it is stale.
  std::optional<NodeJobs> on(const std::string& node, SteadyTime now) const;
  // Why the jobs are not known. It stays until a squeue succeeds, since a missing program fails at
  // once and each dump would clear it unseen.
  const std::string& problem() const { return problem_; }
  // Whether a command was queued for each job there.
  bool is_handled(const std::string& node) const;
  // Requeues or cancels the running jobs there, each once per squeue.
  void end_jobs(const std::string& node, const std::string& machine);
  // Resets to the state after a restart.
  void forget();

  // Returns whether on() or problem() has changed. Starts nothing while not `may_act`.
  bool step(SteadyTime now, bool may_act, std::vector<JobCommand>& done);
  SteadyTime deadline() const { return runner_->running() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  struct Answer {
    std::set<std::string> nodes;  // that were wanted
    slurm::JobsByNode jobs;
    SteadyTime began, ended;
  };
  bool is_fresh(SteadyTime now) const;
  bool take(SteadyTime now, const CommandOutput& output);
  bool take_jobs(SteadyTime now, const CommandOutput& output);
  void finish_command(const CommandOutput& output, std::vector<JobCommand>& done);
  CommandSpec command(const JobCommand& command) const;
  CommandSpec query(SteadyTime now);
  void begin_next(SteadyTime now);

  slurm::ClientSettings client_;
  ShownJobs shown_;
  std::unique_ptr<CommandRunner> runner_;
  std::set<std::string> wanted_;
  std::optional<Answer> known_, coming_;
  std::string problem_;
  bool query_due_ = false, asks_shown_ = false;  // asks_shown_: what runs is shown_'s
  std::deque<JobCommand> commands_;
  std::optional<JobCommand> running_;
  std::set<std::string> handled_,
      no_requeue_;  // reset by each squeue; cancelled instead of requeued
};

}  // namespace slurmlet::op
