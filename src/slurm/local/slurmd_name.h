#pragma once

// The NodeName of a `slurmd -F` (slurmd(8)), which slurmctld chooses when slurmd registers. On the
// machine only slurmd itself tells it: `scontrol show slurmd` (scontrol(1)), its "Hostname". slurmd
// does not listen before it has been told its name, so an answer is never of before that.
//
// That command asks slurmd and, through it, every slurmstepd, so it is run once for each slurmd,
// and again only while it fails. Never blocks. Not thread-safe.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/command.h"
#include "base/delay.h"
#include "base/result.h"

namespace slurmlet::slurm {

// Which slurmd is asked, and how.
struct SlurmdNameQuestion {
  int pid = 0;              // 0 = none is
  std::string conf;         // SLURM_CONF for the command; "" = not set
  std::string conf_server;  // SLURM_CONF_SERVER, where there is no conf; "" = as inherited
  std::string bin_dir;      // where scontrol is; "" = PATH
  bool operator==(const SlurmdNameQuestion&) const = default;
};

CommandSpec slurmd_name_query(const SlurmdNameQuestion& question);

// The NodeName in the answer; else why there is none, in stable words.
Result<std::string> read_slurmd_name(const CommandOutput& output);

class SlurmdName {
 public:
  // Without a runner nobody is ever asked.
  SlurmdName(std::unique_ptr<CommandRunner> runner, Random random)
      : runner_(std::move(runner)), retry_(Delay::kSlurmdNameRetry, std::move(random)) {}

  // Whom to ask from now on; the same process is not asked again once it has told.
  void set_question(const SlurmdNameQuestion& question);

  // True when there is news: name() of the process in the question, or another problem().
  bool step(SteadyTime now);
  SteadyTime wake_at() const;
  std::vector<int> wake_fds() const { return running() ? runner_->wake_fds() : std::vector<int>{}; }

  bool running() const { return runner_ && runner_->running(); }
  // Of the process in the question; "" = it has not told.
  const std::string& name() const { return name_; }
  // Why the last attempt told nothing; "" when it did, or before there was one.
  const std::string& problem() const { return problem_; }

 private:
  bool wanted() const { return runner_ && question_.pid != 0 && name_.empty(); }
  bool start(SteadyTime now);
  bool fail(SteadyTime now, const std::string& problem);

  std::unique_ptr<CommandRunner> runner_;
  SlurmdNameQuestion question_;
  int pid_ = 0;        // whose name and problem are kept
  int asked_pid_ = 0;  // whom the command under way asks
  std::string name_;
  std::string problem_;
  SteadyTime next_{};
  Backoff retry_;
};

}  // namespace slurmlet::slurm
