#include "sync/facts_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "host/gpus.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::milliseconds;

// Slurm sets NOT_RESPONDING for some seconds after each RESUME, until slurmd has registered again.
constexpr Duration kDoubt = std::chrono::seconds{20};

// A job's start shows in several steps over some 150 ms; one look after them is enough.
constexpr Duration kJobsSettle = milliseconds{500};

bool is_gone(Liveness liveness) {
  return liveness == Liveness::kAbsent || liveness == Liveness::kStopped;
}

std::vector<slurm::SlurmdSeen> slurmds_of(const host::Paths& paths) {
  auto seen = slurm::running_slurmds(paths.proc);
  return seen ? *std::move(seen) : std::vector<slurm::SlurmdSeen>{};
}

// All but the pids, which a reconfigure of Slurm changes.
bool same_slurmds(const std::vector<slurm::SlurmdSeen>& a,
                  const std::vector<slurm::SlurmdSeen>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](slurm::SlurmdSeen left, const slurm::SlurmdSeen& right) {
                      left.pid = right.pid;
                      return left == right;
                    });
}

void log_setup(const SlurmSetup& setup) {
  if (!setup.refusal.empty()) {
    log::warning("no node of Slurm is mirrored: " + setup.refusal);
  } else if (!setup.problem.empty()) {
    log::warning("slurm.conf not read: " + setup.problem);
  } else {
    log::info("Slurm node " + setup.node_name + " of cluster \"" + setup.conf.cluster_name +
              "\" (" + setup.why + "; " + setup.conf.path + ")");
  }
}

}  // namespace

FactsSync::FactsSync(FactsOptions options, std::optional<node::Metal3Facts> metal3,
                     Discover discover, std::unique_ptr<slurm::ControllerPoll> poll,
                     std::unique_ptr<slurm::CommandRunner> version_runner,
                     std::unique_ptr<slurm::CommandRunner> unit_runner)
    : options_(std::move(options)),
      discover_(std::move(discover)),
      poll_(std::move(poll)),
      slurmds_(slurmds_of(options_.paths)),
      setup_(discover_(slurmds_)),
      watch_(setup_.watch, std::move(version_runner), std::move(unit_runner)),
      jobs_(setup_.jobs),
      pressures_(options_.paths) {
  facts_.metal3 = std::move(metal3);
  facts_.slurm_conf = setup_.conf;
  tell_poll();
  log_setup(setup_);
  read_machine();
}

void FactsSync::read_machine() {
  const auto old = std::move(facts_.machine);
  facts_.machine = host::read_machine(options_.paths);
  facts_.machine.memory_pressure = old.memory_pressure;
  facts_.machine.disk_pressure = old.disk_pressure;
  facts_.machine.pid_pressure = old.pid_pressure;
  facts_.machine.missing_gpu_files =
      host::missing_files(options_.paths, facts_.slurm_conf.gpu_files);
}

void FactsSync::tell_poll() {
  poll_->set_place(setup_.place);
  if (setup_.refusal.empty()) {
    poll_->set_node(setup_.node_name);
  } else {
    poll_->set_standing_failure({node::SlurmFailure::kNodeUnknown, setup_.refusal});
  }
}

// Whether there are others than before.
bool FactsSync::look_for_slurmds() {
  auto seen = slurmds_of(options_.paths);
  const bool others = !same_slurmds(slurmds_, seen);
  slurmds_ = std::move(seen);
  return others;
}

// A second slurmd may come at any time, or the one too many go. While none runs there is nothing
// new to learn.
void FactsSync::look_again_for_slurmds() {
  if (look_for_slurmds() && (slurmds_.size() > 1 || !setup_.refusal.empty())) {
    setup_slurm();
  }
}

// slurm.conf is read again when slurmd has (re)started: that is when a change of it takes effect.
void FactsSync::setup_slurm() {
  SlurmSetup fresh = discover_(slurmds_);
  const bool news = fresh.node_name != setup_.node_name || fresh.problem != setup_.problem ||
                    fresh.refusal != setup_.refusal || fresh.conf != setup_.conf;
  const bool moved = fresh.node_name != setup_.node_name ||
                     fresh.watch.spool_dir != setup_.watch.spool_dir ||
                     fresh.watch.places.pid_file != setup_.watch.places.pid_file;
  setup_ = std::move(fresh);
  if (news) {
    log_setup(setup_);
  }
  facts_.slurm_conf = setup_.conf;
  read_machine();  // slurmd has counted its GPUs anew as well
  tell_poll();
  if (moved) {
    watch_.reconfigure(setup_.watch);
    jobs_ = slurm::LocalJobsReader{setup_.jobs};
  }
}

void FactsSync::follow_slurmd(Now now) {
  const node::SlurmdFacts before = watched_;
  watched_ = watch_.facts();
  if (is_gone(watched_.liveness)) {
    if (before.liveness == Liveness::kRunning) {
      absent_since_ = now.steady;
      poll_->ask_soon(now);
    }
  } else {
    absent_since_.reset();
  }
  const bool started = watched_.pid != 0 && watched_.pid != before.pid;
  if (started) {
    look_for_slurmds();
    setup_slurm();
    watched_ = watch_.facts();
    if (before.liveness != Liveness::kUnknown) {
      poll_->ask_soon(now);
    }
  }
  facts_.slurmd = watched_;
  if (!setup_.refusal.empty()) {
    facts_.slurmd = {};
    facts_.slurmd.detail = setup_.refusal;
  }
}

// Returns when there is something to do about slurmctld's answer.
SteadyTime FactsSync::follow_answer(Now now) {
  const node::SlurmAnswer answer = poll_->answer(now);
  const bool doubted = answer.record && !answer.stale && !answer.failure &&
                       answer.record->state.has("NOT_RESPONDING") &&
                       watched_.liveness == Liveness::kRunning;
  if (!doubted) {
    doubt_at_.reset();
  } else if (!doubt_at_) {
    doubt_at_ = now.steady + kDoubt;
  } else if (*doubt_at_ != kNever && now.steady >= *doubt_at_) {
    doubt_at_ = kNever;
    poll_->ask_soon(now);
    return now.steady;
  }
  return doubt_at_.value_or(kNever);
}

void FactsSync::read_jobs() {
  facts_.jobs = jobs_.read();
  read_jobs_at_.reset();
}

SteadyTime FactsSync::step(Now now) {
  SteadyTime next = watch_.step(now);
  follow_slurmd(now);
  next = std::min(next, watch_.step(now));
  if (watch_.take_job_event()) {
    poll_->ask_soon(now);
    read_jobs_at_ = std::min(read_jobs_at_.value_or(kNever), now.steady + kJobsSettle);
  }
  if (now.steady >= next_machine_) {
    read_machine();
    read_jobs();
    look_again_for_slurmds();
    next_machine_ = now.steady + options_.machine_interval;
  }
  if (now.steady >= next_tick_) {
    const auto sample = pressures_.sample();
    facts_.machine.memory_pressure = sample.memory;
    facts_.machine.disk_pressure = sample.disk;
    facts_.machine.pid_pressure = sample.pid;
    if (!setup_.refusal.empty()) {
      look_again_for_slurmds();
    }
    next_tick_ = slurm::next_aligned(now, options_.tick);
  }
  next = std::min(next, poll_->step(now));
  next = std::min(next, follow_answer(now));
  const auto answered = poll_->answer(now).answered_at;
  if (answered != jobs_of_answer_ || (read_jobs_at_ && now.steady >= *read_jobs_at_)) {
    jobs_of_answer_ = answered;
    read_jobs();
  }
  if (absent_since_ && now.steady < *absent_since_ + options_.not_ready_grace) {
    next = std::min(next, *absent_since_ + options_.not_ready_grace);
  }
  return std::min({next, next_tick_, next_machine_, read_jobs_at_.value_or(kNever)});
}

std::vector<int> FactsSync::wake_fds() const {
  std::vector<int> fds = watch_.wake_fds();
  const std::vector<int> more = poll_->wake_fds();
  fds.insert(fds.end(), more.begin(), more.end());
  return fds;
}

node::HostFacts FactsSync::facts(Now now) const {
  node::HostFacts facts = facts_;
  facts.slurm = poll_->answer(now);
  return facts;
}

node::Circumstances FactsSync::circumstances(Now now) const {
  node::Circumstances out;
  out.slurmd_grace_over = !absent_since_ || now.steady >= *absent_since_ + options_.not_ready_grace;
  return out;
}

}  // namespace slurmlet::sync
