#include "sync/facts_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::milliseconds;

// A job's start shows in several steps over some 150 ms; one look after them is enough.
constexpr Duration kJobsSettle = milliseconds{500};

bool is_gone(Liveness liveness) {
  return liveness == Liveness::kAbsent || liveness == Liveness::kStopped;
}

void log_setup(const SlurmSetup& setup) {
  if (!setup.problem.empty()) {
    log::warning("slurm.conf not read: " + setup.problem);
  } else {
    log::info("Slurm node " + setup.node_name + " of cluster \"" + setup.conf.cluster_name +
              "\" (" + setup.why + "; " + setup.conf.path + ")");
  }
}

}  // namespace

FactsSync::FactsSync(FactsOptions options, std::optional<node::Metal3Facts> metal3,
                     Discover discover, std::unique_ptr<slurm::ControllerPoll> poll,
                     std::unique_ptr<slurm::CommandRunner> version_runner)
    : options_(std::move(options)),
      discover_(std::move(discover)),
      poll_(std::move(poll)),
      setup_(discover_("")),
      watch_(setup_.watch, std::move(version_runner)),
      jobs_(setup_.jobs),
      pressures_(options_.paths) {
  facts_.metal3 = std::move(metal3);
  facts_.slurm_conf = setup_.conf;
  poll_->set_node(setup_.node_name);
  log_setup(setup_);
  read_machine();
}

void FactsSync::read_machine() {
  const auto old = std::move(facts_.machine);
  facts_.machine = host::read_machine(options_.paths);
  facts_.machine.memory_pressure = old.memory_pressure;
  facts_.machine.disk_pressure = old.disk_pressure;
  facts_.machine.pid_pressure = old.pid_pressure;
}

// slurm.conf is read again when slurmd has (re)started: that is when a change of it takes effect.
void FactsSync::setup_slurm() {
  SlurmSetup fresh = discover_(watch_.node_option());
  const bool news = fresh.node_name != setup_.node_name || fresh.problem != setup_.problem ||
                    fresh.conf != setup_.conf;
  const bool moved = fresh.node_name != setup_.node_name ||
                     fresh.watch.spool_dir != setup_.watch.spool_dir ||
                     fresh.watch.places.pid_file != setup_.watch.places.pid_file;
  setup_ = std::move(fresh);
  if (news) {
    log_setup(setup_);
  }
  facts_.slurm_conf = setup_.conf;
  if (moved) {
    poll_->set_node(setup_.node_name);
    watch_.reconfigure(setup_.watch);
    jobs_ = slurm::LocalJobsReader{setup_.jobs};
  }
}

void FactsSync::follow_slurmd(Now now) {
  const node::SlurmdFacts before = facts_.slurmd;
  facts_.slurmd = watch_.facts();
  if (is_gone(facts_.slurmd.liveness)) {
    if (before.liveness == Liveness::kRunning) {
      absent_since_ = now.steady;
      poll_->ask_soon(now);
    }
  } else {
    absent_since_.reset();
  }
  const bool started = facts_.slurmd.pid != 0 && facts_.slurmd.pid != before.pid;
  if (started) {
    setup_slurm();
    facts_.slurmd = watch_.facts();
    if (before.liveness != Liveness::kUnknown) {
      poll_->ask_soon(now);
    }
  }
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
    next_machine_ = now.steady + options_.machine_interval;
  }
  if (now.steady >= next_tick_) {
    const auto sample = pressures_.sample();
    facts_.machine.memory_pressure = sample.memory;
    facts_.machine.disk_pressure = sample.disk;
    facts_.machine.pid_pressure = sample.pid;
    next_tick_ = slurm::next_aligned(now, options_.tick);
  }
  next = std::min(next, poll_->step(now));
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
