#pragma once

// Whether Slurm shows us the jobs of all users (privileges.h), which is asked before the jobs are
// listed, at most once a minute: hidden ones would look like none. Pure.

#include <optional>
#include <string>
#include <utility>

#include "base/command.h"
#include "slurm/answers/privileges.h"

namespace slurmlet::op {

class ShownJobs {
 public:
  ShownJobs(slurm::ClientSettings client, slurm::SlurmIdentity self)
      : client_(std::move(client)), self_(std::move(self)) {}

  // What to ask next; nothing: all jobs are shown.
  std::optional<CommandSpec> query(SteadyTime now);
  // The answer. Returns whether query() may be called at once.
  bool take(SteadyTime now, const CommandOutput& output);
  // Why they are not, or not known to be shown.
  const std::string& problem() const { return problem_; }

 private:
  bool hidden();

  slurm::ClientSettings client_;
  slurm::SlurmIdentity self_;
  slurm::PrivacyConfig privacy_;
  bool asks_level_ = false;             // the next query is for our AdminLevel
  std::optional<SteadyTime> shown_at_;  // last seen to be shown
  std::string problem_;
};

}  // namespace slurmlet::op
