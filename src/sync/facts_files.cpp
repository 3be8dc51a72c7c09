// FactsSync: reading Slurm's files, which may lie on a file system that hangs.

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/mountinfo.h"
#include "sync/facts_sync.h"

namespace slurmlet::sync {
namespace {

std::vector<slurm::SlurmdSeen> slurmds_of(const host::Paths& paths, const TrustedUsers& users) {
  auto seen = slurm::running_slurmds(paths.proc, users);
  return seen ? *std::move(seen) : std::vector<slurm::SlurmdSeen>{};
}

// All but the pid, which a reconfigure of Slurm changes.
bool same_slurmd(slurm::SlurmdSeen a, const slurm::SlurmdSeen& b) {
  a.pid = b.pid;
  return a == b;
}

bool same_slurmds(const std::vector<slurm::SlurmdSeen>& a,
                  const std::vector<slurm::SlurmdSeen>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_slurmd);
}

void log_setup(const SlurmSetup& setup) {
  if (!setup.refusal.empty()) {
    log::warning("this machine's Slurm node is not known: " + setup.refusal);
  } else if (!setup.problem.empty()) {
    log::warning("slurm.conf not read: " + setup.problem);
  } else {
    log::info("Slurm node " + setup.node_name + " of cluster \"" + setup.conf.cluster_name +
              "\" (" + setup.why + "; " + setup.conf.path + ")");
  }
  for (const auto& file : setup.left_out) {
    log::warning("part of slurm.conf not read: " + file);
  }
}

}  // namespace

// Whether there are others than before.
bool FactsSync::look_for_slurmds() {
  auto seen = slurmds_of(options_.paths, setup_.watch.places.users);
  const bool others = !same_slurmds(slurmds_, seen);
  slurmds_ = std::move(seen);
  return others;
}

void FactsSync::tell_poll() {
  poll_->set_place(setup_.place);
  if (setup_.pace) {
    poll_->set_pace(*setup_.pace);
  }
  if (setup_.refusal.empty()) {
    poll_->set_node(setup_.node_name, setup_.site);
  } else {
    poll_->set_standing_failure({setup_.refusal_cause, setup_.refusal});
  }
}

// slurm.conf is read again when slurmd has (re)started: that is when a change of it takes effect.
void FactsSync::setup_slurm(Now now) {
  wanted_ = true;
  follow_reading(now, reading_.busy() ? Duration::zero() : options_.patience);
}

void FactsSync::begin_reading(Now now) {
  auto work = [discover = discover_, paths = options_.paths, users = options_.slurm_users,
               is_first = !read_, slurmds = slurmds_] {
    Reading reading;
    reading.slurmds = is_first ? slurmds_of(paths, users()) : slurmds;
    reading.setup = discover(reading.slurmds);
    return reading;
  };
  wanted_ = !reading_.begin(std::move(work), now.steady, options_.reading_limit);
}

void FactsSync::follow_reading(Now now, Duration patience) {
  if (wanted_ && !reading_.busy()) {
    begin_reading(now);
  }
  if (auto reading = reading_.take(patience)) {
    if (!late_.empty()) {
      log::info("slurm.conf answers again; before, " + late_);
      late_.clear();
    }
    take_reading(*std::move(reading), now);
    if (wanted_) {  // it was begun before the last reason for it
      begin_reading(now);
    }
  } else if (reading_.late(now.steady) && late_.empty()) {
    late_ = reading_.problem();
    if (read_) {
      log::warning("slurm.conf not read again, what it said before still counts: " + late_);
    } else {
      log::warning("slurm.conf not read: " + late_);
      poll_->set_standing_failure({node::SlurmFailure::kFileSystemHangs, late_});
    }
  }
}

void FactsSync::take_reading(Reading reading, Now now) {
  const bool is_first = !std::exchange(read_, true);
  read_beside_.clear();
  for (const auto& slurmd : reading.slurmds) {
    read_beside_.push_back(slurmd.pid);
  }
  if (is_first) {
    slurmds_ = std::move(reading.slurmds);
  }
  SlurmSetup fresh = std::move(reading.setup);
  const bool news = is_first || fresh.node_name != setup_.node_name ||
                    fresh.problem != setup_.problem || fresh.refusal != setup_.refusal ||
                    fresh.conf != setup_.conf || fresh.left_out != setup_.left_out;
  const bool moved = fresh.node_name != setup_.node_name || fresh.jobs != setup_.jobs ||
                     fresh.watch.spool_dir != setup_.watch.spool_dir ||
                     fresh.watch.places != setup_.watch.places ||
                     fresh.watch.identity != setup_.watch.identity;
  setup_ = std::move(fresh);
  if (news) {
    log_setup(setup_);
  }
  facts_.slurm_conf = setup_.conf;
  const bool certain = setup_.problem.empty() && setup_.refusal.empty();
  facts_.slurm_node = certain ? setup_.node_name : "";
  if (now.steady < next_machine_) {
    read_machine();  // slurmd has counted its GPUs anew as well
  }
  tell_poll();
  if (moved) {
    watch_.reconfigure(setup_.watch);
    jobs_ = slurm::LocalJobsReader{setup_.jobs};
    spool_ = {};
    compared_mounts_of_ = 0;
    if (!is_first) {
      next_watch_ = watch_.step(now);
    }
  }
  if (is_first && !facts_.jobs) {
    read_jobs_at_ = now.steady;
  }
}

void FactsSync::read_jobs(Now now) {
  read_jobs_at_.reset();
  if (!read_) {
    return;
  }
  jobs_wanted_ =
      !spool_.begin([directory = setup_.jobs.spool_dir] { return list_directory(directory); },
                    now.steady, options_.reading_limit);
  follow_spool(now, jobs_wanted_ ? Duration::zero() : options_.patience);
}

void FactsSync::follow_spool(Now now, Duration patience) {
  if (const auto entries = spool_.take(patience)) {
    if (!spool_late_.empty()) {
      log::info("this machine's jobs are known again");
      spool_late_.clear();
    }
    take_jobs(*entries);
    if (std::exchange(jobs_wanted_, false)) {
      read_jobs_at_ = now.steady;
    }
  } else if (spool_.late(now.steady) && spool_late_.empty()) {
    spool_late_ = spool_.problem();
    log::warning("this machine's jobs are unknown: " + spool_late_);
    facts_.jobs.reset();
  }
  facts_.jobs_problem = spool_late_;
}

void FactsSync::follow_disk(Now now) {
  node::MachineFacts& machine = facts_.machine;
  Duration patience{};
  if (disk_wanted_ && !disk_.busy()) {
    disk_wanted_ = !disk_.begin(
        [read = options_.disk_usage, path = options_.paths.state_dir] { return read(path); },
        now.steady, options_.reading_limit);
    patience = options_.patience;
  }
  if (const auto usage = disk_.take(patience)) {
    if (!std::exchange(machine.disk_problem, "").empty()) {
      log::info("stateDir answers again");
    }
    machine.disk_pressure = pressures_.disk(*usage);
    if (*usage && std::exchange(disk_size_wanted_, false)) {
      machine.ephemeral_storage_bytes = (*usage)->total_bytes;
    }
  } else if (disk_.late(now.steady) && machine.disk_problem.empty()) {
    machine.disk_problem = disk_.problem();
    machine.disk_pressure.reset();
    log::warning("stateDir: " + machine.disk_problem);
  }
}

void FactsSync::take_jobs(const Result<std::vector<std::string>>& entries) {
  facts_.jobs = jobs_.read(entries);
  // None in a directory that is not slurmd's means nothing.
  if (facts_.jobs && facts_.jobs->jobs == 0 && watched_.pid != 0) {
    if (compared_mounts_of_ != watched_.pid) {
      compared_mounts_of_ = watched_.pid;
      spool_is_slurmds_ = is_seen_alike(options_.paths.proc, watched_.pid, setup_.jobs.spool_dir);
    }
    if (!spool_is_slurmds_) {
      facts_.jobs.reset();
    }
  }
}

}  // namespace slurmlet::sync
