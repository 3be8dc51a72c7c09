#pragma once

// The jobs on this machine, by slurmd's spool directory and its processes (local_jobs.h): read once
// per report, when the directory changes, and beside each answer of slurmctld. The directory may
// lie on a file system that hangs: then the jobs are unknown, with it as the cause.
//
// A step object; not thread-safe.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/slow_value.h"
#include "node/facts.h"
#include "slurm/local/local_jobs.h"
#include "sync/facts_options.h"

namespace slurmlet::sync {

class JobTracker {
 public:
  explicit JobTracker(const FactsOptions& options);

  // Where slurm.conf says that they are; nothing is read before. Other places are read at once.
  void set_places(const slurm::LocalJobsPlaces& places);
  // The spool directory has changed.
  void note_event(Now now);
  // A report: everything anew.
  void read_again();

  // Sets facts.jobs and why they are unknown; `facts` has slurmctld's answer. `slurmd` is a pid, 0
  // = none. Returns when to call again.
  SteadyTime step(Now now, int slurmd, node::HostFacts& facts);
  // Whether jobs came or went since the last call: evidence for a query.
  bool take_change() { return !read_at_ && std::exchange(has_changed_, false); }

  // The next event need not wake: a reading is due soon anyway.
  bool is_settling() const { return read_at_.has_value(); }
  int wake_fd() const { return spool_.wake_fd(); }

 private:
  using Entries = Result<std::vector<std::string>>;
  void request();
  void take(const Entries& entries, int slurmd, node::HostFacts& facts);
  bool is_slurmds_directory(int slurmd);

  std::string proc_;
  Duration patience_;
  slurm::LocalJobsPlaces places_;
  slurm::LocalJobsReader reader_;
  SlowValue<Entries> spool_;             // its entries
  std::optional<SteadyTime> read_at_;    // after an event
  bool has_changed_ = false;             // and no query has been requested for it
  std::optional<WallTime> answered_at_;  // slurmctld's answer that they were read beside
  int compared_mounts_of_ = 0;     // this slurmd's with ours, since the last report; 0 = not yet
  bool spool_is_slurmds_ = false;  // the result
};

}  // namespace slurmlet::sync
