#pragma once

// The jobs on the nodes of Machines that are being deleted: one squeue for all after each dump,
// once it is known that Slurm shows us the jobs of all users (privileges.h), and what is done to
// them, one command after the other. A step object, never blocks, not thread-safe.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command.h"
#include "operator/rules/machine_rules.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/squeue.h"

namespace slurmlet::op {

// How long what squeue said counts.
inline constexpr Duration kJobsFresh = std::chrono::seconds{3};

// A command that ends a job, and what came of it.
struct SlurmAct {
  enum class Kind : std::uint8_t { kRequeue, kCancel };
  Kind kind;
  std::string what;          // a job
  std::string machine;       // for whose sake
  std::string failure = {};  // "" = done
};

class SlurmJobs {
 public:
  SlurmJobs(slurm::ClientSettings client, slurm::SlurmIdentity self,
            std::unique_ptr<CommandRunner> runner)
      : client_(std::move(client)), self_(std::move(self)), runner_(std::move(runner)) {}

  // After each dump: the Slurm nodes that it shows drained, or does not have, whose jobs are to be
  // known. Discards what was known of jobs and what was to be done.
  void new_dump(SteadyTime now);
  void want(const std::string& node) { wanted_.insert(node); }
  // By a squeue that began right after a dump in which this node was wanted, and not long ago.
  std::optional<NodeJobs> on(const std::string& node, SteadyTime now) const;
  // Why they are not known; "" while nothing has failed. It stays until a squeue succeeds: a
  // program that is missing fails at once, and each dump would take it back unseen.
  const std::string& problem() const { return problem_; }
  // Whether all that is to be done there was begun since it is known.
  bool is_handled(const std::string& node) const;
  // Requeues or cancels what runs there. Nothing is done twice before it is known again.
  void end_jobs(const std::string& node, const std::string& machine);
  // As after a restart.
  void forget();

  // True when on() has something new. Nothing new begins while not `may_act`.
  bool step(SteadyTime now, bool may_act, std::vector<SlurmAct>& done);
  SteadyTime deadline() const { return runner_->running() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  struct Answer {
    std::set<std::string> nodes;  // that were looked for
    slurm::JobsByNode jobs;
    SteadyTime began, ended;
  };
  enum class Query : std::uint8_t { kConfig, kAdminLevel, kJobs, kDone };
  bool is_fresh(SteadyTime now) const;
  bool take(SteadyTime now, const CommandOutput& output);
  bool take_jobs(SteadyTime now, const CommandOutput& output);
  void finish_act(const CommandOutput& output, std::vector<SlurmAct>& done);
  CommandSpec command(const SlurmAct& act) const;
  CommandSpec query(SteadyTime now);
  void begin_next(SteadyTime now);

  slurm::ClientSettings client_;
  slurm::SlurmIdentity self_;
  std::unique_ptr<CommandRunner> runner_;
  std::set<std::string> wanted_;
  std::optional<Answer> known_, coming_;
  std::string problem_;
  Query next_ = Query::kDone, asked_ = Query::kDone;  // since the last dump; the last one begun
  slurm::PrivacyConfig privacy_;
  std::optional<SteadyTime> shown_at_;  // when it was last known that Slurm hides nothing from us
  std::deque<SlurmAct> acts_;
  std::optional<SlurmAct> act_;                 // under way
  std::set<std::string> handled_, no_requeue_;  // since known_; jobs that Slurm did not requeue
};

}  // namespace slurmlet::op
