#include "operator/machines/slurm_jobs.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "operator/site/limited_command.h"
#include "operator/site/node_changes.h"
#include "slurm/answers/values.h"

namespace slurmlet::op {
namespace {

// slurmctld's messages about a job that cannot be requeued although squeue showed otherwise
// (slurm_errno.c). After any other message the job is not cancelled.
bool cannot_be_requeued(std::string_view text) {
  return contains(text, "presently disabled") || contains(text, "Only batch jobs");
}

bool has_ended(std::string_view text) {
  return contains(text, "already completing or completed") || contains(text, "Invalid job id");
}

}  // namespace

void SlurmJobs::new_dump() {
  if (wanted_.empty()) {
    problem_.clear();
  }
  wanted_.clear();
  known_.reset();
  query_due_ = true;
  commands_.clear();
}

void SlurmJobs::forget() {
  new_dump();
  problem_.clear();
  coming_.reset();
  no_requeue_.clear();
}

// Stale jobs must not be acted on; the next dump lists them again.
bool SlurmJobs::is_fresh(SteadyTime now) const {
  return known_ && now - known_->ended <= kJobsFresh;
}

std::optional<NodeJobs> SlurmJobs::on(const std::string& node, SteadyTime now) const {
  if (!is_fresh(now) || !known_->nodes.contains(node)) {
    return std::nullopt;
  }
  NodeJobs out;
  const auto found = known_->jobs.find(node);
  if (found == known_->jobs.end()) {
    return out;
  }
  for (const auto& job : found->second) {
    ++(job.completing ? out.completing : out.running);
    if (!job.completing) {
      out.limited = out.limited && job.ends.has_value();
      out.last_ends = std::max(out.last_ends, job.ends.value_or(WallTime{}));
    }
  }
  return out;
}

bool SlurmJobs::is_handled(const std::string& node) const {
  const auto found = known_->jobs.find(node);
  return found == known_->jobs.end() || std::ranges::all_of(found->second, [this](const auto& job) {
           return job.completing || handled_.contains(job.id);
         });
}

void SlurmJobs::end_jobs(const std::string& node, const std::string& machine) {
  for (const auto& job : known_->jobs[node]) {
    if (!job.completing && handled_.insert(job.id).second) {
      const bool requeue = job.can_requeue && !no_requeue_.contains(job.id);
      commands_.push_back(
          {requeue ? JobCommand::Kind::kRequeue : JobCommand::Kind::kCancel, job.id, machine});
    }
  }
}

void SlurmJobs::finish_command(const CommandOutput& output, std::vector<JobCommand>& done) {
  JobCommand command = *std::exchange(running_, std::nullopt);
  const auto known = slurm::known_failure(output.err);
  const std::string unanswered = why_unanswered(output, "Slurm's command");
  if (!output.succeeded() && unanswered.empty() && command.kind == JobCommand::Kind::kRequeue) {
    if (cannot_be_requeued(output.err)) {
      no_requeue_.insert(command.job);  // cancelled if the next squeue still has it
      return;
    }
    if (has_ended(output.err)) {
      return;
    }
  }
  if (!output.succeeded()) {
    command.failure = !unanswered.empty() ? unanswered
                      : known             ? known->detail
                                          : "the command failed: " + slurm::excerpt(output.err);
  }
  done.push_back(std::move(command));
}

bool SlurmJobs::take(SteadyTime now, const CommandOutput& output) {
  if (!asks_shown_) {
    query_due_ = false;
    return take_jobs(now, output);
  }
  query_due_ = shown_.take(now, output);
  if (!query_due_) {
    problem_ = shown_.problem();
  }
  return !query_due_;
}

bool SlurmJobs::take_jobs(SteadyTime now, const CommandOutput& output) {
  if (!coming_) {
    return false;  // from before forget()
  }
  auto jobs = slurm::read_squeue(output, coming_->nodes);
  known_ = std::exchange(coming_, std::nullopt);
  known_->ended = now;
  handled_.clear();
  if (jobs && now - known_->began <= client_.timeout + kLongestChange) {
    known_->jobs = *std::move(jobs);
    problem_.clear();
    std::erase_if(no_requeue_, [this](const std::string& id) {
      return std::ranges::none_of(known_->jobs, [&id](const auto& node) {
        return std::ranges::any_of(node.second, [&id](const auto& job) { return job.id == id; });
      });
    });
  } else {
    known_.reset();
    problem_ = jobs ? "squeue did not finish in time" : jobs.error().message;
  }
  return true;
}

CommandSpec SlurmJobs::command(const JobCommand& command) const {
  // "Incomplete", since a job that has ended meanwhile would run again.
  CommandSpec spec = slurm::slurm_command(
      client_,
      command.kind == JobCommand::Kind::kCancel
          ? std::vector<std::string>{"scancel", command.job}
          : std::vector<std::string>{"scontrol", "--local", "requeue", "Incomplete", command.job});
  spec.timeout = std::min(client_.timeout, kLongestChange);
  limit_by_alarm(spec);
  return spec;
}

CommandSpec SlurmJobs::query(SteadyTime now) {
  auto spec = shown_.query(now);
  asks_shown_ = spec.has_value();
  if (spec) {
    return *std::move(spec);
  }
  coming_ = Answer{wanted_, {}, now, now};
  return slurm::squeue_query(client_);
}

void SlurmJobs::begin_next(SteadyTime now) {
  if (!is_fresh(now)) {
    commands_.clear();  // a job may have been requeued and run elsewhere by now
  }
  CommandSpec spec;
  if (!commands_.empty()) {
    running_ = std::move(commands_.front());
    commands_.pop_front();
    spec = command(*running_);
  } else if (!wanted_.empty() && !known_ && query_due_) {
    spec = query(now);
  } else {
    return;
  }
  if (const Status started = runner_->start(spec, now); !started) {
    problem_ = started.error().message;
    query_due_ = false;
    running_.reset();
    coming_.reset();
  }
}

bool SlurmJobs::step(SteadyTime now, bool may_act, std::vector<JobCommand>& done) {
  CommandOutput output;
  bool changed = false;
  if (runner_->running() && runner_->poll(now, output)) {
    if (running_) {
      finish_command(output, done);
    } else {
      changed = take(now, output);
    }
  }
  if (!runner_->running() && may_act) {
    begin_next(now);
  }
  return changed;
}

}  // namespace slurmlet::op
