#pragma once

// Keeps the facts about this machine and its slurmd fresh, by events and a thirty-second tick.
//
// Owns the sources: pressure samples (each tick), the rest of the machine (each report interval),
// slurmd (pidfd and inotify), jobs on the machine, and the questions to slurmctld. The tick falls
// on multiples of the wall clock, so that all nodes of a parallel job are disturbed at one moment.
//
// A step object: never blocks but for reading small local files; not thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "host/machine.h"
#include "host/pressure.h"
#include "node/conditions.h"
#include "node/facts.h"
#include "slurm/controller_poll.h"
#include "slurm/local_jobs.h"
#include "slurm/slurmd_watch.h"

namespace slurmlet::sync {

// What Slurm's files on this machine say, and where to look: made by reading slurm.conf.
struct SlurmSetup {
  std::string node_name;  // Slurm's NodeName
  std::string why;        // how it was found, for people
  std::string problem;    // why slurm.conf could not be read; "" if it was
  node::SlurmConfFacts conf;
  slurm::SlurmdWatchSettings watch;
  slurm::LocalJobsPlaces jobs;
};

struct FactsOptions {
  host::Paths paths;
  Duration machine_interval = std::chrono::minutes{5};
  Duration tick = std::chrono::seconds{30};  // pressures: news, not a matter of seconds here
  Duration not_ready_grace = std::chrono::seconds{15};
};

class FactsSync {
 public:
  // Reads slurm.conf again; the argument is NAME of the running slurmd's -N, "" if none.
  using Discover = std::function<SlurmSetup(const std::string& slurmd_option)>;

  FactsSync(FactsOptions options, std::optional<node::Metal3Facts> metal3, Discover discover,
            std::unique_ptr<slurm::ControllerPoll> poll,
            std::unique_ptr<slurm::CommandRunner> version_runner);

  SteadyTime step(Now now);
  std::vector<int> wake_fds() const;

  node::HostFacts facts(Now now) const;
  node::Circumstances circumstances(Now now) const;
  const slurm::PollCounters& poll_counters() const { return poll_->counters(); }

 private:
  void read_machine();
  void setup_slurm();
  void follow_slurmd(Now now);
  void read_jobs();

  FactsOptions options_;
  Discover discover_;
  std::unique_ptr<slurm::ControllerPoll> poll_;
  SlurmSetup setup_;
  slurm::SlurmdWatch watch_;
  slurm::LocalJobsReader jobs_;
  host::PressureSampler pressures_;
  node::HostFacts facts_;
  std::optional<SteadyTime> absent_since_;  // slurmd went while we watched
  std::optional<SteadyTime> read_jobs_at_;
  SteadyTime next_tick_{};
  SteadyTime next_machine_{};
  std::optional<WallTime> jobs_of_answer_;  // the answer of slurmctld that jobs were read for
};

}  // namespace slurmlet::sync
