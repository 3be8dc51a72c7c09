#include "sync/facts_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "host/gpus.h"
#include "node/slurm_view.h"
#include "slurm/sources/local_directory.h"

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

std::vector<slurm::SlurmdSeen> slurmds_of(const host::Paths& paths, const TrustedUsers& users) {
  auto seen = slurm::running_slurmds(paths.proc, users);
  return seen ? *std::move(seen) : std::vector<slurm::SlurmdSeen>{};
}

// All but the pid, which a reconfigure of Slurm changes, and what it reports when queried.
bool same_slurmd(slurm::SlurmdSeen a, const slurm::SlurmdSeen& b) {
  a.pid = b.pid;
  a.told_name = b.told_name;
  return a == b;
}

bool same_slurmds(const std::vector<slurm::SlurmdSeen>& a,
                  const std::vector<slurm::SlurmdSeen>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_slurmd);
}

void log_setup(const SlurmSetup& setup) {
  if (!setup.refusal.empty() && setup.told_by.pid != 0) {
    log::info("this machine's Slurm node is not known yet: " + setup.refusal);
  } else if (!setup.refusal.empty()) {
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

FactsSync::FactsSync(Parts parts)
    : options_(std::move(parts.options)),
      discover_(std::move(parts.discover)),
      poll_(std::move(parts.poll)),
      slurmds_(slurmds_of(options_.paths, options_.slurm_users)),
      setup_(discover_(slurmds_)),
      watch_(setup_.watch, std::move(parts.version_runner), std::move(parts.unit_runner)),
      name_(std::move(parts.name_runner)),
      jobs_(setup_.jobs),
      probe_(std::move(parts.probe)),
      pressures_(options_.paths) {
  facts_.metal3 = std::move(parts.metal3);
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
    poll_->set_standing_failure({setup_.refusal_cause, setup_.refusal});
  }
}

// Whether there are others than before.
bool FactsSync::look_for_slurmds() {
  auto seen = slurmds_of(options_.paths, setup_.watch.places.users);
  const bool others = !same_slurmds(slurmds_, seen);
  for (auto& slurmd : seen) {
    if (same_slurmd(slurmd, told_)) {
      slurmd.told_name = told_.told_name;
    }
  }
  slurmds_ = std::move(seen);
  return others;
}

// A second slurmd may come at any time, or the one too many go. While none runs there is nothing
// new to learn.
void FactsSync::look_again_for_slurmds(Now now) {
  // A file that was rejected may have been given its right owner or mode.
  const bool rejected =
      !setup_.refusal.empty() && setup_.refusal_cause == node::SlurmFailure::kBadConfiguration;
  if ((look_for_slurmds() && (slurmds_.size() > 1 || !setup_.refusal.empty())) || rejected) {
    setup_slurm(now);
  }
}

// With the reading of the machine, and at each tick while there is something to resolve.
bool FactsSync::is_due_to_look(Now now) const {
  return now.steady >= next_machine_ || (!setup_.refusal.empty() && now.steady >= next_tick_);
}

// slurm.conf is read again when slurmd has (re)started: that is when a change of it takes effect.
void FactsSync::setup_slurm(Now now) {
  SlurmSetup fresh = discover_(slurmds_);
  const bool news = fresh.node_name != setup_.node_name || fresh.problem != setup_.problem ||
                    fresh.refusal != setup_.refusal || fresh.conf != setup_.conf ||
                    fresh.left_out != setup_.left_out;
  const bool moved = fresh.node_name != setup_.node_name || fresh.jobs != setup_.jobs ||
                     fresh.watch.spool_dir != setup_.watch.spool_dir ||
                     fresh.watch.places != setup_.watch.places ||
                     fresh.watch.identity != setup_.watch.identity;
  setup_ = std::move(fresh);
  if (news) {
    log_setup(setup_);
  }
  facts_.slurm_conf = setup_.conf;
  read_machine();  // slurmd has counted its GPUs anew as well
  tell_poll();
  if (moved) {
    watch_.reconfigure(setup_.watch);
    next_watch_ = watch_.step(now);
    jobs_ = slurm::LocalJobsReader{setup_.jobs};
  }
}

void FactsSync::take_watched(Now now) {
  const auto before = watched_.liveness;
  watched_ = watch_.facts();
  if (is_gone(watched_.liveness)) {
    if (before == Liveness::kRunning) {
      absent_since_ = now.steady;
      poll_->ask_soon(now);
    }
  } else {
    absent_since_.reset();
  }
}

void FactsSync::follow_slurmd(Now now) {
  const node::SlurmdFacts before = watched_;
  take_watched(now);
  const bool started = watched_.pid != 0 && watched_.pid != before.pid;
  if (started || is_gone(watched_.liveness)) {
    probe_.forget();
    probed_version_.clear();
  }
  if (started) {
    look_for_slurmds();
    setup_slurm(now);
    take_watched(now);  // by the new rules the slurmd may not count any more
    if (before.liveness != Liveness::kUnknown) {
      poll_->ask_soon(now);
    }
  }
}

// What a slurmd of slurmctld's choice says of its own name.
void FactsSync::follow_name(Now now) {
  slurm::SlurmdNameQuestion question = setup_.told_by;
  if (watched_.liveness != Liveness::kRunning) {
    question.pid = 0;
  }
  name_.set_question(question);
  if (!name_.step(now.steady)) {
    return;
  }
  if (name_.name().empty()) {
    log::info("slurmd has not reported the node name and will be queried again: " +
              name_.problem());
    return;
  }
  for (auto& slurmd : slurmds_) {
    if (slurmd.pid == question.pid && slurmd.told_name != name_.name()) {
      slurmd.told_name = name_.name();
      told_ = slurmd;
      setup_slurm(now);
      return;
    }
  }
}

// Returns when there is something to do about slurmctld's answer.
SteadyTime FactsSync::follow_answer(Now now) {
  const node::SlurmAnswer& answer = facts_.slurm;
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

// slurmd is asked as soon as its version is known, and then once a report.
SteadyTime FactsSync::follow_probe(Now now, bool is_due) {
  const bool runs = watched_.liveness == Liveness::kRunning && !watched_.version.empty();
  if (runs && (is_due || probed_version_ != watched_.version)) {
    probed_version_ = watched_.version;
    probe_.ask(setup_.slurmd_port, watched_.version, now.steady);
  }
  return probe_.step(now.steady);
}

void FactsSync::read_jobs() {
  facts_.jobs = jobs_.read();
  read_jobs_at_.reset();
  // None in a directory that is not slurmd's means nothing.
  if (facts_.jobs && facts_.jobs->jobs == 0 && watched_.pid != 0 &&
      !slurm::is_seen_alike(options_.paths.proc, watched_.pid, setup_.jobs.spool_dir)) {
    facts_.jobs.reset();
  }
}

// A full query may fail once, or come late, before its predecessor's answer no longer counts.
SteadyTime FactsSync::follow_confirmation(Now now) {
  if (now.steady >= confirmed_until_) {
    facts_.confirmed.reset();
  }
  const SteadyTime due = poll_->want_confirmation(node::needs_confirmation(facts_), now);
  return facts_.confirmed ? std::min(due, confirmed_until_) : due;
}

// A job that began or ended while the full query ran is in the dump or not: nothing is confirmed.
void FactsSync::take_answer(Now now) {
  const node::SlurmAnswer& answer = facts_.slurm;
  jobs_of_answer_ = answer.answered_at;
  read_jobs();
  const auto before = std::exchange(jobs_before_query_, std::nullopt);
  const bool is_full = answer.record && answer.record->kind == node::AnswerKind::kFullDump;
  if (is_full && before && facts_.jobs && before->job_ids == facts_.jobs->job_ids) {
    facts_.confirmed = node::Confirmation{*answer.record, facts_.jobs->job_ids};
    confirmed_until_ = now.steady + 2 * options_.confirm_interval;
  }
}

SteadyTime FactsSync::step(Now now) {
  if (is_due_to_look(now)) {
    look_again_for_slurmds(now);
  }
  next_watch_ = watch_.step(now);
  follow_slurmd(now);
  follow_name(now);
  SteadyTime next = std::min(name_.wake_at(), next_watch_);
  if (watch_.take_job_event()) {
    poll_->ask_soon(now);
    read_jobs_at_ = std::min(read_jobs_at_.value_or(kNever), now.steady + kJobsSettle);
  }
  const bool machine_due = now.steady >= next_machine_;
  next = std::min(next, follow_probe(now, machine_due));
  if (machine_due) {
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
  const auto full_queries = poll_->counters().source.full_queries;
  auto jobs_before = facts_.jobs;
  next = std::min(next, poll_->step(now));
  facts_.slurm = poll_->answer(now);
  next = std::min(next, follow_answer(now));
  if (facts_.slurm.answered_at != jobs_of_answer_) {
    take_answer(now);
  } else if (read_jobs_at_ && now.steady >= *read_jobs_at_) {
    read_jobs();
  }
  if (poll_->counters().source.full_queries != full_queries) {
    jobs_before_query_ = std::move(jobs_before);
  }
  set_slurmd();
  next = std::min(next, follow_confirmation(now));
  if (absent_since_ && now.steady < *absent_since_ + options_.not_ready_grace) {
    next = std::min(next, *absent_since_ + options_.not_ready_grace);
  }
  return std::min({next, next_tick_, next_machine_, read_jobs_at_.value_or(kNever)});
}

std::vector<int> FactsSync::wake_fds() const {
  std::vector<int> fds = watch_.wake_fds(read_jobs_at_.has_value());
  for (const auto& more : {name_.wake_fds(), poll_->wake_fds()}) {
    fds.insert(fds.end(), more.begin(), more.end());
  }
  return fds;
}

void FactsSync::set_slurmd() {
  facts_.slurmd = watched_;
  facts_.slurmd.serves = probe_.ready();
  // It is not known which of several slurmd is this node's.
  if (!setup_.refusal.empty() && setup_.told_by.pid == 0) {
    facts_.slurmd = {};
    facts_.slurmd.detail = setup_.refusal;
  }
}

void FactsSync::prefer_address(const std::string& address) {
  auto& addresses = facts_.machine.ip_addresses;
  const auto found = std::find(addresses.begin(), addresses.end(), address);
  if (found != addresses.end()) {
    std::rotate(addresses.begin(), found, found + 1);
  }
}

node::Circumstances FactsSync::circumstances(Now now) const {
  node::Circumstances out;
  out.slurmd_grace_over = !absent_since_ || now.steady >= *absent_since_ + options_.not_ready_grace;
  return out;
}

}  // namespace slurmlet::sync
