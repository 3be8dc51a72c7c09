#include "operator/machines/controller_machines.h"

#include <algorithm>
#include <utility>

#include "operator/machines/slurm_jobs.h"
#include "operator/site/limited_command.h"
#include "operator/site/node_changes.h"
#include "slurm/answers/controllers.h"
#include "slurm/answers/values.h"

namespace slurmlet::op {
namespace {

// The backup waits for the end of the slurmctld that is in charge.
constexpr Duration kNextTakeover = std::chrono::minutes{1};

// Less than SlurmctldTimeout (120 s), after which another backup takes over from one that has
// ended and come back between two pings.
constexpr Duration kTookOver = std::chrono::seconds{100};

bool has_come_back(const std::vector<node::Controller>& before,
                   const std::vector<node::Controller>& now) {
  return std::ranges::any_of(now, [&](const node::Controller& one) {
    return one.up && std::ranges::find(before, one) == before.end();
  });
}

}  // namespace

void ControllerMachines::new_dump(const DumpedNodes& dump, Now now) {
  ping_ = PingState::kNotWanted;
  wanted_takeover_.reset();
  if (dump.problem(now.wall).empty()) {
    dump_began_ = dump.counters().began;
    dump_ended_ = now.steady;
  }
}

void ControllerMachines::forget() {
  before_.reset();
  last_.reset();
  ping_ = PingState::kNotWanted;
  wanted_takeover_.reset();
  last_takeover_ = {};
  problem_.clear();
  failure_.clear();
}

// A ping from before the last dump is not repeated yet.
std::optional<std::vector<node::Controller>> ControllerMachines::seen(SteadyTime now) const {
  const bool is_fresh = last_ && last_->began >= dump_ended_ && now - last_->ended <= kJobsFresh;
  return is_fresh ? std::optional{last_->controllers} : std::nullopt;
}

bool ControllerMachines::answered() const {
  return before_ && last_ && before_->controllers == last_->controllers &&
         before_->ended <= dump_began_ && last_->began >= dump_ended_;
}

std::string ControllerMachines::took_over(SteadyTime now) const {
  return now - last_takeover_.at <= kTookOver ? last_takeover_.host : "";
}

bool ControllerMachines::take_over(std::size_t backup, SteadyTime now) {
  if (now < takeover_not_before_ || running_takeover_) {
    return false;
  }
  wanted_takeover_ = backup;
  takeover_not_before_ = now + kNextTakeover;
  return true;
}

// A takeover that takes long is no failure: the pings show its result.
bool ControllerMachines::finish(SteadyTime now, const CommandOutput& output) {
  if (const auto took = std::exchange(running_takeover_, std::nullopt)) {
    last_takeover_ = output.succeeded() ? *took : Takeover{};
    const auto known = slurm::known_failure(output.err);
    const bool is_slow = !why_unanswered(output, "scontrol").empty() ||
                         (known && known->cause == node::SlurmFailure::kControllerUnreachable);
    failure_ = output.succeeded() || is_slow ? ""
               : known                       ? known->detail
                                             : slurm::excerpt(output.err);
    return !failure_.empty();
  }
  auto controllers = slurm::read_ping(output);
  before_ = std::exchange(last_, std::nullopt);
  problem_ = controllers ? "" : controllers.error().message;
  if (controllers) {
    last_ = Ping{*std::move(controllers), began_, now};
    if (!before_ || has_come_back(before_->controllers, last_->controllers)) {
      last_takeover_ = {};
    }
  }
  return true;
}

// Returns whether it failed.
bool ControllerMachines::begin(SteadyTime now) {
  CommandSpec spec;
  if (wanted_takeover_) {
    running_takeover_ = Takeover{last_ && *wanted_takeover_ < last_->controllers.size()
                                     ? last_->controllers[*wanted_takeover_].host
                                     : "",
                                 now};
    spec = slurm::takeover_command(client_, *std::exchange(wanted_takeover_, std::nullopt));
    spec.timeout = std::min(client_.timeout, kLongestChange);
    limit_by_alarm(spec);
  } else if (ping_ == PingState::kWanted) {
    spec = slurm::ping_query(client_);
    ping_ = PingState::kBegun;
    began_ = now;
  } else {
    return false;
  }
  const Status started = runner_->start(spec, now);
  if (!started) {
    problem_ = started.error().message;
    running_takeover_.reset();
  }
  return !started;
}

bool ControllerMachines::step(SteadyTime now, bool may_act) {
  CommandOutput output;
  bool changed = false;
  if (runner_->running() && runner_->poll(now, output)) {
    changed = finish(now, output);
  }
  if (!runner_->running() && may_act) {
    changed = begin(now) || changed;
  }
  return changed;
}

}  // namespace slurmlet::op
