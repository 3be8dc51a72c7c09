#include "operator/site/node_changes.h"

#include <algorithm>
#include <utility>

#include "operator/site/limited_command.h"
#include "slurm/answers/values.h"

namespace slurmlet::op {
namespace {

// Names per command, far below the limit of execve(2).
constexpr std::size_t kMostNodes = 500;
// Changes per command that each need a blocking call to confirm.
constexpr std::size_t kMostConfirmed = 50;
constexpr Duration kFirstPause = std::chrono::seconds{1}, kLongestPause = std::chrono::minutes{1};

// Linux takes no argument that is longer than 128 KiB (MAX_ARG_STRLEN).
constexpr std::size_t kLongestReason = std::size_t{100} << 10;

const char* to_state(DrainAction action) {
  switch (action) {
    case DrainAction::kDrain:
      return "state=drain";
    case DrainAction::kUndrain:
      return "state=undrain";
    case DrainAction::kResume:
      return "state=resume";
    case DrainAction::kFail:
      return "state=fail";
    default:
      return "";
  }
}

bool is_same(const NodeChange& a, const NodeChange& b) {
  return a.action == b.action && a.reason == b.reason;
}

}  // namespace

NodeChanges::NodeChanges(slurm::ClientSettings client, std::unique_ptr<CommandRunner> runner,
                         Confirm confirm, const Clock& clock, Random random)
    : client_(std::move(client)),
      runner_(std::move(runner)),
      confirm_(std::move(confirm)),
      clock_(clock),
      backoff_(std::chrono::milliseconds{500}, std::chrono::seconds{2}, std::chrono::seconds{60},
               std::move(random)),
      failed_(kFirstPause, kLongestPause),
      most_(kMostNodes) {}

void NodeChanges::want(const std::string& slurm_node, SteadyTime now) {
  wanted_.try_emplace(slurm_node, Wanted{.since = now});
}

void NodeChanges::decide(const std::vector<NodeChange>& changes, SteadyTime began, SteadyTime now) {
  if (!is_shown_by(began)) {
    return;
  }
  decided_from_ = began;
  std::map<std::string, Wanted> wanted;
  for (const NodeChange& change : changes) {
    const auto known = wanted_.find(change.slurm_node);
    const bool is_new = known == wanted_.end() || known->second.since == kNever;
    Wanted next = is_new ? Wanted{.since = began} : known->second;
    next.change = change;
    wanted.try_emplace(change.slurm_node, std::move(next));
  }
  wanted_ = std::move(wanted);
  failed_.retain([this](const auto& name) { return wanted_.contains(name); });
  if (wanted_.empty()) {
    problem_.clear();
  } else if (now - began > kFresh) {
    problem_ = "slurmctld's answer came too late to act by it";
    paused_until_ = now + backoff_.next();
  }
}

void NodeChanges::forget() {
  wanted_.clear();
  failed_.forget_all();
  problem_.clear();
  paused_until_ = {};
}

bool NodeChanges::has_pending(SteadyTime now) const {
  return now >= paused_until_ && !runner_->running() &&
         std::ranges::any_of(wanted_,
                             [&](const auto& entry) { return failed_.may_try(entry.first, now); });
}

bool NodeChanges::has_waiting() const {
  return std::ranges::any_of(wanted_,
                             [](const auto& entry) { return entry.second.since != kNever; });
}

std::vector<std::string> NodeChanges::waiting_since(SteadyTime then) const {
  std::vector<std::string> out;
  for (const auto& [name, wanted] : wanted_) {
    if (wanted.since <= then && !failed_.has_failed(name)) {
      out.push_back(name);
    }
  }
  return out;
}

// The change that has waited longest, and all others with the same action and Reason.
std::vector<NodeChange> NodeChanges::next_batch(SteadyTime now) {
  std::vector<const Wanted*> ready;
  for (const auto& [name, wanted] : wanted_) {
    if (wanted.change.action != DrainAction::kNone && failed_.may_try(name, now)) {
      ready.push_back(&wanted);
    }
  }
  std::ranges::stable_sort(ready, {}, &Wanted::since);
  std::vector<NodeChange> batch;
  for (const Wanted* wanted : ready) {
    const bool fits =
        batch.size() < most_ && (!is_final(wanted->change.action) || batch.size() < kMostConfirmed);
    if (fits && (batch.empty() || is_same(batch.front(), wanted->change))) {
      batch.push_back(wanted->change);
    }
  }
  return batch;
}

CommandSpec NodeChanges::command() const {
  std::string names;
  for (const NodeChange& change : batch_) {
    names += (names.empty() ? "" : ",") + change.slurm_node;
  }
  const NodeChange& all = batch_.front();
  const char* const verb = all.action == DrainAction::kDelete ? "delete" : "update";
  CommandSpec spec =
      slurm::slurm_command(client_, {"scontrol", "--local", verb, "nodename=" + names});
  if (const std::string state = to_state(all.action); !state.empty()) {
    spec.argv.push_back(state);
  }
  if (!all.reason.empty()) {
    spec.argv.push_back("reason=" + all.reason);
  }
  spec.timeout = std::min(client_.timeout, kLongestChange);
  limit_by_alarm(spec);
  return spec;
}

// Returns false if there is nothing to start.
bool NodeChanges::begin(SteadyTime now, std::vector<Done>& done) {
  batch_ = next_batch(now);
  if (batch_.empty()) {
    return false;
  }
  if (is_final(batch_.front().action)) {
    std::erase_if(batch_, [this](const NodeChange& change) {
      const bool confirmed = clock_.now().steady - decided_from_ <= kFresh && confirm_(change);
      if (!confirmed) {
        wanted_.erase(change.slurm_node);  // the watch or the next dump requests it again
      }
      return !confirmed;
    });
    now = clock_.now().steady;
  }
  if (batch_.empty() || now - decided_from_ > kFresh) {
    return true;
  }
  if (batch_.front().reason.size() > kLongestReason) {
    fail(now, "its Reason in Slurm is too long", false, done);
  } else if (const auto started = runner_->start(command(), now); !started) {
    fail(now, started.error().message, true, done);
  }
  return true;
}

void NodeChanges::finish(SteadyTime now, const CommandOutput& output, std::vector<Done>& done) {
  if (!output.succeeded()) {
    const auto known = slurm::known_failure(output.err);
    const std::string unanswered = why_unanswered(output, "scontrol");
    if (!unanswered.empty()) {
      fail(now, unanswered, true, done);
    } else if (known && known->cause != node::SlurmFailure::kInvalidResponse) {
      fail(now, known->detail, true, done);
    } else {
      fail(now, "scontrol failed: " + slurm::excerpt(output.err), false, done);
    }
    return;
  }
  backoff_.reset();
  problem_.clear();
  most_ = std::min(2 * most_, kMostNodes);
  for (NodeChange& change : batch_) {
    wanted_[change.slurm_node] = {.since = kNever};
    done.push_back({std::move(change), ""});
  }
  batch_.clear();
}

void NodeChanges::fail(SteadyTime now, const std::string& why, bool of_all,
                       std::vector<Done>& done) {
  problem_ = why;
  if (of_all) {
    paused_until_ = now + backoff_.next();
  } else if (batch_.size() > 1) {
    most_ = batch_.size() / 2;  // the next dump shows which ones were changed
  } else {
    failed_.failed(batch_.front().slurm_node, now);
    most_ = kMostNodes;
  }
  if (of_all || batch_.size() == 1) {
    for (NodeChange& change : batch_) {
      done.push_back({std::move(change), why});
    }
  }
  batch_.clear();
}

SteadyTime NodeChanges::step(SteadyTime now, bool may_act, std::vector<Done>& done) {
  CommandOutput output;
  if (runner_->running() && runner_->poll(now, output)) {
    changed_at_ = now;
    finish(now, output, done);
  }
  const auto can_begin = [&] {
    return !runner_->running() && may_act && now >= paused_until_ && now - decided_from_ <= kFresh;
  };
  while (can_begin() && begin(now, done)) {
    now = clock_.now().steady;
  }
  if (runner_->running() || !may_act) {
    return runner_->running() ? runner_->deadline() : kNever;
  }
  SteadyTime next = kNever;  // the next dump has its own deadline
  for (const auto& [name, wanted] : wanted_) {
    const SteadyTime due = std::max(failed_.not_before(name), paused_until_);
    next = due > now ? std::min(next, due) : next;
  }
  return next;
}

}  // namespace slurmlet::op
