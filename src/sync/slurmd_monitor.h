#pragma once

// slurmd of this node, by its process (slurmd_watch.h): since when it is down, and whether
// slurmctld's view of it is in doubt.
//
// A step object; not thread-safe.

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "node/facts.h"
#include "slurm/local/slurmd_watch.h"

namespace slurmlet::sync {

class SlurmdMonitor {
 public:
  // `grace`: an absence shorter than that leaves the Node Ready.
  SlurmdMonitor(slurm::SlurmdWatchSettings settings, std::unique_ptr<CommandRunner> version_runner,
                std::unique_ptr<CommandRunner> unit_runner, Duration grace);

  // What slurm.conf says about it; another setting than before searches anew in the next step.
  void configure(const slurm::SlurmdWatchSettings& settings);

  struct Change {
    bool went = false;     // it ran, and does not
    bool came = false;     // it did not run, and does
    bool started = false;  // it is another process
  };
  Change step(Now now);
  // When to call again at the latest. After a step.
  SteadyTime wake_at(Now now) const;
  std::vector<int> wake_fds(bool jobs_can_wait) const { return watch_.wake_fds(jobs_can_wait); }

  const node::SlurmdFacts& facts() const { return facts_; }
  bool is_gone() const;
  bool grace_is_over(Now now) const { return !absent_since_ || now.steady >= grace_end(); }
  // slurmctld says NOT_RESPONDING while slurmd runs, for longer than after each RESUME; true once.
  bool doubts(const node::SlurmAnswer& answer, Now now);
  bool take_job_event() { return watch_.take_job_event(); }
  // slurmd's program is being run for its version.
  bool learns_version() const { return watch_.learns_version(); }

 private:
  SteadyTime grace_end() const { return *absent_since_ + grace_; }

  slurm::SlurmdWatchSettings settings_;
  slurm::SlurmdWatch watch_;
  Duration grace_;
  node::SlurmdFacts facts_;  // as of the last step
  SteadyTime next_watch_{};
  std::optional<SteadyTime> absent_since_;  // it went while we watched
  std::optional<SteadyTime> doubt_at_;      // kNever: already reported
};

}  // namespace slurmlet::sync
