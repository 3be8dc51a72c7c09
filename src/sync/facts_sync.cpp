#include "sync/facts_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/gpu_cards.h"

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

}  // namespace

FactsSync::FactsSync(Parts parts)
    : options_(std::move(parts.options)),
      discover_(std::move(parts.discover)),
      poll_(std::move(parts.poll)),
      setup_(std::move(parts.unread)),
      watch_(setup_.watch, std::move(parts.version_runner), std::move(parts.unit_runner)),
      jobs_(setup_.jobs),
      pressures_(options_.paths) {
  facts_.metal3 = std::move(parts.metal3);
  facts_.machine.gpus_hang = true;  // so far
}

void FactsSync::read_machine() {
  facts_.machine = host::read_machine(options_.paths, std::move(facts_.machine));
  facts_.machine.system_uuid = options_.system_uuid;
  gpus_wanted_ = disk_size_wanted_ = true;
}

// A driver that hangs costs the news of the GPUs only: how many there are stays known.
void FactsSync::follow_gpus(Now now) {
  Duration patience{};
  if (gpus_wanted_ && !gpus_.busy()) {
    auto read = [read = options_.read_gpus, paths = options_.paths,
                 files = node::card_files(facts_.slurm_conf)] { return read(paths, files); };
    gpus_wanted_ = !gpus_.begin(std::move(read), now.steady, options_.reading_limit);
    patience = options_.patience;
  }
  if (auto reading = gpus_.take(patience)) {
    if (std::exchange(gpus_late_, false)) {
      log::info("the GPUs of this machine are read again");
    }
    facts_.machine.gpus_hang = false;
    facts_.machine.gpus = std::move(reading->gpus);
    facts_.machine.missing_gpu_files = std::move(reading->missing_files);
  } else if (gpus_.late(now.steady) && !std::exchange(gpus_late_, true)) {
    facts_.machine.gpus_hang = true;
    log::warning("the GPU driver does not answer");
  }
}

// A second slurmd may come at any time, or the one too many go. While none runs there is nothing
// new to learn.
void FactsSync::look_again_for_slurmds(Now now) {
  if (!read_) {
    return;
  }
  // A file that was rejected may have been given its right owner or mode, a name server may answer
  // again.
  const bool may_have_changed = !setup_.refusal.empty();
  if ((look_for_slurmds() && (slurmds_.size() > 1 || !setup_.refusal.empty())) ||
      may_have_changed) {
    setup_slurm(now);
  }
}

// With the reading of the machine (but the first: slurm.conf has just been read), and at each tick
// while there is something to resolve.
bool FactsSync::is_due_to_look(Now now) const {
  return next_machine_ != SteadyTime{} &&
         (now.steady >= next_machine_ || (!setup_.refusal.empty() && now.steady >= next_tick_));
}

void FactsSync::take_watched(Now now) {
  const auto before = watched_.liveness;
  watched_ = watch_.facts();
  if (is_gone(watched_.liveness)) {
    if (before == Liveness::kRunning) {
      absent_since_ = now.steady;
      poll_->request_poll(now);
    }
  } else {
    absent_since_.reset();
  }
}

void FactsSync::follow_slurmd(Now now) {
  const node::SlurmdFacts before = watched_;
  take_watched(now);
  const bool started = watched_.pid != 0 && watched_.pid != before.pid;
  if (is_gone(watched_.liveness)) {
    read_beside_.clear();  // one of them may begin to count, and slurm.conf with it
  }
  const bool has_been_read =
      std::find(read_beside_.begin(), read_beside_.end(), watched_.pid) != read_beside_.end();
  if (started && !has_been_read) {
    // Without an absence it is scontrol reconfigure, on all nodes at the same moment.
    const bool reconfigured = before.liveness == Liveness::kRunning && setup_.refusal.empty();
    const Duration spread = std::min(delay_rule(Delay::kReread).to, poll_->pace().spread);
    reread_at_ = now.steady + (reconfigured ? setup_.site.in(spread, "reread:") : Duration::zero());
  }
  if (started && is_gone(before.liveness)) {
    poll_->request_poll(now);
  }
  if (now.steady >= reread_at_) {
    reread_at_ = kNever;
    look_for_slurmds();
    setup_slurm(now);
    take_watched(now);  // by the new rules the slurmd may not count any more
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
    poll_->request_poll(now);
    return now.steady;
  }
  return doubt_at_.value_or(kNever);
}

void FactsSync::follow_pressures(Now now) {
  if (now.steady >= next_tick_) {
    const auto sample = pressures_.sample();
    facts_.machine.memory_pressure = sample.memory;
    facts_.machine.pid_pressure = sample.pid;
    disk_wanted_ = true;
    next_tick_ = next_aligned(now, options_.tick);
  }
  follow_disk(now);
}

SteadyTime FactsSync::step(Now now) {
  follow_reading(now, std::exchange(options_.first_patience, Duration::zero()));
  follow_spool(now);
  if (is_due_to_look(now)) {
    look_again_for_slurmds(now);
  }
  next_watch_ = watch_.step(now);
  follow_slurmd(now);
  SteadyTime next = next_watch_;
  if (watch_.take_job_event()) {
    jobs_changed_ = true;
    read_jobs_at_ = std::min(read_jobs_at_.value_or(kNever), now.steady + kJobsSettle);
  }
  if (now.steady >= next_machine_) {
    read_machine();
    compared_mounts_of_ = 0;
    read_jobs(now);
    next_machine_ = now.steady + options_.machine_interval;
  }
  follow_gpus(now);
  follow_pressures(now);
  next = std::min(next, poll_->step(now));
  facts_.slurm = poll_->answer(now);
  next = std::min(next, follow_answer(now));
  if (facts_.slurm.answered_at != jobs_of_answer_) {
    jobs_of_answer_ = facts_.slurm.answered_at;
    read_jobs(now);
  } else if (read_jobs_at_ && now.steady >= *read_jobs_at_) {
    read_jobs(now);
  }
  if (jobs_changed_ && !read_jobs_at_) {
    jobs_changed_ = false;
    poll_->request_poll(now);
    next = now.steady;
  }
  set_slurmd();
  if (absent_since_ && now.steady < *absent_since_ + options_.not_ready_grace) {
    next = std::min(next, *absent_since_ + options_.not_ready_grace);
  }
  return std::min({next, next_tick_, next_machine_, reread_at_, read_jobs_at_.value_or(kNever),
                   reading_.late_at(now.steady), spool_.late_at(now.steady),
                   gpus_.late_at(now.steady), disk_.late_at(now.steady)});
}

std::vector<int> FactsSync::wake_fds() const {
  std::vector<int> fds = watch_.wake_fds(read_jobs_at_.has_value());
  const std::vector<int> polls = poll_->wake_fds();
  fds.insert(fds.end(), polls.begin(), polls.end());
  for (const int fd : {reading_.wake_fd(), spool_.wake_fd(), gpus_.wake_fd(), disk_.wake_fd()}) {
    if (fd >= 0) {
      fds.push_back(fd);
    }
  }
  return fds;
}

void FactsSync::set_slurmd() {
  facts_.slurmd = watched_;
  // It is not known which of several slurmd is this node's.
  if (!setup_.refusal.empty()) {
    facts_.slurmd = {};
    facts_.slurmd.detail = setup_.refusal;
  }
  // A slurmd outside its unit is found by the pidfile that slurm.conf names.
  if (!read_ && watched_.liveness != Liveness::kRunning) {
    facts_.slurmd = {};
    facts_.slurmd.detail = late_.empty() ? "slurm.conf has not been read yet" : late_;
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
