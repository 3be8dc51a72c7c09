#include "sync/job_tracker.h"

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "base/mountinfo.h"

namespace slurmlet::sync {
namespace {

// A job's start shows in several steps over some 150 ms; one reading after them is enough.
constexpr Duration kJobsSettle = std::chrono::milliseconds{500};

}  // namespace

JobTracker::JobTracker(const FactsOptions& options)
    : proc_(options.paths.proc),
      patience_(options.patience),
      reader_({}),
      spool_(options.reading_limit) {}

void JobTracker::set_places(const slurm::LocalJobsPlaces& places) {
  if (places == places_) {
    return;
  }
  places_ = places;
  reader_ = slurm::LocalJobsReader{places};
  spool_.abandon();
  read_again();
}

void JobTracker::note_event(Now now) {
  has_changed_ = true;
  read_at_ = std::min(read_at_.value_or(kNever), now.steady + kJobsSettle);
}

void JobTracker::read_again() {
  compared_mounts_of_ = 0;
  request();
}

void JobTracker::request() {
  read_at_.reset();
  if (!places_.spool_dir.empty()) {
    spool_.request();
  }
}

SteadyTime JobTracker::step(Now now, int slurmd, node::HostFacts& facts) {
  if (facts.slurm.answered_at != answered_at_) {
    answered_at_ = facts.slurm.answered_at;
    request();
  } else if (read_at_ && now.steady >= *read_at_) {
    request();
  }
  const bool was_late = spool_.is_late();
  const auto work = [&] {
    return [directory = places_.spool_dir] { return list_directory(directory); };
  };
  if (const auto entries = spool_.poll(now.steady, work, patience_)) {
    if (was_late) {
      log::info("this machine's jobs are known again");
    }
    take(*entries, slurmd, facts);
  } else if (spool_.is_late() && !was_late) {
    log::warning("this machine's jobs are unknown: " + spool_.problem());
    facts.jobs.reset();
  }
  facts.jobs_problem = spool_.problem();
  return std::min(read_at_.value_or(kNever), spool_.wake_at(now.steady));
}

void JobTracker::take(const Entries& entries, int slurmd, node::HostFacts& facts) {
  facts.jobs = reader_.read(entries);
  // An empty directory that is not slurmd's proves nothing.
  if (facts.jobs && facts.jobs->jobs == 0 && slurmd != 0 && !is_slurmds_directory(slurmd)) {
    facts.jobs.reset();
  }
}

bool JobTracker::is_slurmds_directory(int slurmd) {
  if (std::exchange(compared_mounts_of_, slurmd) != slurmd) {
    spool_is_slurmds_ = is_seen_alike(proc_, slurmd, places_.spool_dir);
  }
  return spool_is_slurmds_;
}

}  // namespace slurmlet::sync
