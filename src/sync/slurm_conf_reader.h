#pragma once

// Reads slurm.conf, and with it which slurmd and NodeName are this machine's: at the start, for
// each slurmd that starts (that is when a change takes effect), and when other slurmds run here or
// a file that was rejected may have changed.
//
// It may lie on a file system that hangs. The first reading is waited for, up to two seconds, that
// a new Node has its labels from the beginning; any other for a tenth of a second. Where it has
// never been read all that follows from it is unknown; once read it stays true.
//
// A step object; not thread-safe.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "base/slow_value.h"
#include "node/facts.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/slurmd_process.h"
#include "slurm/local/slurmd_watch.h"
#include "slurm/sources/controller_poll.h"
#include "sync/facts_options.h"

namespace slurmlet::sync {

// What Slurm's files on this machine say, and where to read: made by reading slurm.conf.
struct SlurmSetup {
  std::string node_name;              // Slurm's NodeName
  std::string why;                    // how it was found, for people
  std::string problem;                // why slurm.conf could not be read; "" if it was
  std::vector<std::string> left_out;  // of it: Includes that could not be read, with why
  std::string name_problem;           // why no NodeName can be chosen; "" where there is one
  node::SlurmFailure name_problem_cause = node::SlurmFailure::kNodeUnknown;
  slurm::ClusterPlace place;
  std::optional<slurm::PollSettings> pace;  // by the nodes of slurm.conf; nothing if not read
  SitePlace site;
  node::SlurmConfFacts conf;
  slurm::SlurmdWatchSettings watch;
  slurm::LocalJobsPlaces jobs;
};

// Reads slurm.conf; the argument is every slurmd that runs on this machine. Runs on other threads
// and may outlive its owner: it owns what it uses.
using Discover = std::function<SlurmSetup(const std::vector<slurm::SlurmdSeen>& slurmds)>;

class SlurmConfReader {
 public:
  // `unread` holds as long as slurm.conf has not been read.
  SlurmConfReader(const FactsOptions& options, Discover discover, SlurmSetup unread);

  // Each returns whether there is a new setup(). The first one waits for a reading that began
  // before as well.
  bool await(Now now, Duration patience);
  bool read_again(Now now);
  // Looks which slurmds run, and reads again if there are others or a name could not be chosen.
  bool recheck(Now now);

  // A process has started: read again `after`, unless it ran when the last reading began.
  void slurmd_started(int pid, Now now, Duration after);
  // Another may now count, and its slurm.conf with it.
  void slurmd_is_gone() { read_beside_.clear(); }
  bool is_due(Now now) const { return now.steady >= reread_at_; }

  const SlurmSetup& setup() const { return setup_; }
  bool is_read() const { return is_read_; }  // once at least
  bool names_no_node() const { return !setup_.name_problem.empty(); }
  // Why a reading is late; "" = it is not.
  const std::string& problem() const { return reading_.problem(); }

  SteadyTime wake_at(Now now) const;
  int wake_fd() const { return reading_.wake_fd(); }

 private:
  struct Reading {
    std::vector<slurm::SlurmdSeen> slurmds;
    SlurmSetup setup;
  };
  std::function<Reading()> work() const;
  bool read(Now now);
  bool find_slurmds();
  bool finish(std::optional<Reading> reading, const std::string& problem_before);
  void take(Reading reading);

  FactsOptions options_;
  Discover discover_;
  SlurmSetup setup_;
  SlowValue<Reading> reading_;
  bool is_read_ = false;
  std::vector<slurm::SlurmdSeen> slurmds_;  // as setup_ knows them
  std::vector<int> read_beside_;            // those that ran when the last reading began
  SteadyTime reread_at_ = kNever;
};

}  // namespace slurmlet::sync
