#include "operator/node_updates.h"

#include <algorithm>
#include <utility>

#include "operator/limited_command.h"
#include "slurm/answers/record_text.h"
#include "slurm/answers/values.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {
namespace {

// Of a look, when the change begins.
constexpr Duration kFresh = std::chrono::seconds{5};
constexpr Duration kLongestLook = std::chrono::seconds{4};
// After an undrain: whether our Reason is left, and never at once again.
constexpr Duration kReasonLeft = std::chrono::milliseconds{500};

// Whether no other node could be changed either.
bool lies_with_all(node::SlurmFailure cause) { return cause != node::SlurmFailure::kGarbage; }

SlurmNode slurm_node(node::SlurmNodeRecord record, std::string text = {}) {
  return {std::move(record.name),  std::move(record.hostname),
          std::move(record.state), std::move(record.reason),
          std::move(text),         std::move(record.address)};
}

std::optional<SlurmNode> read_shown(const std::string& text, const std::string& seal,
                                    const std::string& name) {
  const auto records = slurm::split_dump(text, seal);
  if (!records || !records->contains(name)) {
    return std::nullopt;
  }
  auto node = read_slurm_node(records->at(name));
  return node && node->name == name ? node : std::nullopt;
}

}  // namespace

std::optional<SlurmNode> read_slurm_node(const std::string& text) {
  auto record = slurm::read_record_text(text);
  if (!record) {
    return std::nullopt;
  }
  return slurm_node(*std::move(record), text);
}

NodeUpdates::NodeUpdates(slurm::SinfoSettings client, std::unique_ptr<CommandRunner> runner,
                         Decide decide, Random random)
    : client_(std::move(client)),
      runner_(std::move(runner)),
      decide_(std::move(decide)),
      backoff_(std::chrono::milliseconds{500}, std::chrono::seconds{2}, std::chrono::seconds{60},
               std::move(random)) {
  client_.resolve_user = false;
}

SteadyTime NodeUpdates::quiet_until() const {
  return stage_ == Stage::kLook && runner_->running() ? looked_at_ + kFresh : SteadyTime{};
}

void NodeUpdates::begin(SteadyTime now, CommandSpec spec, Stage stage, std::vector<Done>& done) {
  spec.timeout = std::min(client_.timeout, stage == Stage::kChange ? kLongestChange : kLongestLook);
  if (stage == Stage::kChange) {
    limit_by_alarm(spec);
  }
  stage_ = stage;
  if (const auto started = runner_->start(spec, now); !started) {
    failed(now, started.error().message, true, done);
  }
}

void NodeUpdates::begin_next(SteadyTime now, std::vector<Done>& done) {
  const auto next =
      std::min_element(wanted_.begin(), wanted_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (next != wanted_.end() && next->second <= now) {
    node_ = next->first;
    change_ = {};
    seal_.clear();
    look(now, slurm::sinfo_query(client_, node_), done);
  }
}

void NodeUpdates::look(SteadyTime now, CommandSpec spec, std::vector<Done>& done) {
  looked_at_ = now;
  begin(now, std::move(spec), Stage::kLook, done);
}

// sinfo shows no node that is in no partition. scontrol does, and has slurmctld list all nodes for
// that.
void NodeUpdates::look_everywhere(SteadyTime now, std::vector<Done>& done) {
  auto seal = slurm::new_seal();
  if (!seal) {
    failed(now, seal.error().message, true, done);
    return;
  }
  seal_ = *std::move(seal);
  look(now, slurm::dump_query(client_, seal_, node_), done);
}

// Nothing when that is dealt with.
std::optional<SlurmNode> NodeUpdates::read_look(SteadyTime now, const CommandOutput& output,
                                                std::vector<Done>& done) {
  if (seal_.empty()) {
    auto answer = slurm::interpret(output, node_);
    if (answer.record) {
      return slurm_node(*std::move(answer.record));
    }
    if (answer.failure->cause == node::SlurmFailure::kNotInSlurm) {
      look_everywhere(now, done);
    } else {
      failed(now, answer.failure->detail, lies_with_all(answer.failure->cause), done);
    }
    return std::nullopt;
  }
  if (output.out == "Node " + node_ + " not found\n") {
    wanted_.erase(node_);  // the next dump tells
    stage_ = Stage::kIdle;
    return std::nullopt;
  }
  if (!output.succeeded()) {
    command_failed(now, output, done);
    return std::nullopt;
  }
  auto node = read_shown(output.out, seal_, node_);
  if (!node) {
    failed(now, "slurmctld's record of it could not be parsed", false, done);
  }
  return node;
}

void NodeUpdates::looked(SteadyTime now, const CommandOutput& output, std::vector<Done>& done) {
  if (now - looked_at_ > kFresh) {  // this process stood still meanwhile
    failed(now, "the answer came too late to act by it", true, done);
    was_late_ = true;
    return;
  }
  was_late_ = false;
  const auto node = read_look(now, output, done);
  if (!node) {
    return;
  }
  change_ = decide_(*node);
  if (change_.action == DrainAction::kNone) {
    wanted_.erase(node_);
    stage_ = Stage::kIdle;
    return;
  }
  CommandSpec spec =
      slurm::slurm_command(client_, {"scontrol", "--local", "update", "nodename=" + node_});
  if (change_.action != DrainAction::kSetReason) {
    spec.argv.emplace_back(change_.action == DrainAction::kDrain ? "state=drain" : "state=undrain");
  }
  // Not with an undrain, which slurmctld may reject when it has set the Reason already.
  if (change_.action != DrainAction::kUndrain) {
    spec.argv.push_back("reason=" + change_.reason);
  }
  begin(now, std::move(spec), Stage::kChange, done);
}

void NodeUpdates::command_failed(SteadyTime now, const CommandOutput& output,
                                 std::vector<Done>& done) {
  const auto known = slurm::known_failure(output.err);
  if (const std::string why = why_unanswered(output, "scontrol"); !why.empty()) {
    failed(now, why, true, done);
  } else if (known) {
    failed(now, known->detail, lies_with_all(known->cause), done);
  } else {
    failed(now, "scontrol failed: " + slurm::excerpt(output.err), false, done);
  }
}

void NodeUpdates::failed(SteadyTime now, const std::string& why, bool of_all,
                         std::vector<Done>& done) {
  stage_ = Stage::kIdle;
  const SteadyTime again = now + backoff_.next();
  if (of_all) {
    paused_until_ = again;
  }
  if (const auto wanted = wanted_.find(node_); wanted != wanted_.end()) {
    wanted->second = again;
  }
  done.push_back({node_, change_, why});
}

SteadyTime NodeUpdates::step(SteadyTime now, bool may_act, std::vector<Done>& done) {
  CommandOutput output;
  if (runner_->running() && runner_->poll(now, output)) {
    if (stage_ == Stage::kLook && may_act) {
      looked(now, output, done);
    } else if (stage_ == Stage::kLook) {
      stage_ = Stage::kIdle;
    } else if (!output.succeeded()) {
      command_failed(now, output, done);
    } else {
      stage_ = Stage::kIdle;
      backoff_.reset();
      if (change_.action != DrainAction::kUndrain) {
        wanted_.erase(node_);
      } else if (const auto wanted = wanted_.find(node_); wanted != wanted_.end()) {
        wanted->second = now + kReasonLeft;
      }
      done.push_back({node_, change_, ""});
    }
  }
  if (!runner_->running() && may_act && now >= paused_until_) {
    begin_next(now, done);
  }
  if (runner_->running()) {
    return runner_->deadline();
  }
  SteadyTime next = kNever;
  for (const auto& [name, not_before] : wanted_) {
    next = std::min(next, not_before);
  }
  return next == kNever || !may_act ? kNever : std::max(next, paused_until_);
}

}  // namespace slurmlet::op
