#include "operator/machine_sync.h"

// Its calls of the API servers: few at a time, as they block, and again later where they fail.

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr EventReason kMachineReleased{"MachineReleased", false};

constexpr Duration kNextCalls = std::chrono::milliseconds{100};
constexpr Duration kWatchTells = std::chrono::seconds{30};
constexpr Duration kFirstCallPause = std::chrono::seconds{10},
                   kLongestCallPause = std::chrono::minutes{1};

}  // namespace

bool MachineSync::may_call(const std::string& key, Now now) {
  const auto own = troubles_.find(key);
  const SteadyTime pause =
      std::max(paused_until_, own == troubles_.end() ? SteadyTime{} : own->second.until);
  if (now.steady < pause || --calls_left_ < 0) {
    again_ = std::min(again_, std::max(pause, now.steady + kNextCalls));
    return false;
  }
  return may_act_();
}

// A watch may be behind for minutes where its server hangs, and for ever where that was restored
// from a backup: what cannot be undone is done on the server's own word.
bool MachineSync::is_as_seen(const kube::Machine& machine, Now now) {
  const std::string key = key_of(machine);
  if (!may_call(key, now)) {
    return false;
  }
  const Status same = context_.api.confirm(machine);
  if (!same) {
    failed(key, "could not confirm that Machine " + key + " is unchanged", same.error(), now);
  } else {
    succeeded(key);
  }
  return static_cast<bool>(same) && may_act_();
}

// Whether the Node says so now, or needs not.
bool MachineSync::mark(const std::string& key, const MachinePlace& place, const char* value,
                       Now now) {
  const auto marked = marked_.find(place.node.uid);
  if (!place.has_node || place.node.detach == value ||
      (marked != marked_.end() && marked->second.value == value &&
       now.steady < marked->second.until)) {
    return true;
  }
  if (settings_.dry_run || !may_call(key, now)) {
    return false;
  }
  const Status done =
      context_.site.annotate(place.node.name, place.node.uid, {{names::kDetach, value}});
  if (!done && done.error().code != Code::kNotFound) {
    failed(
        key,
        std::string{"could not set annotation "} + names::kDetach + " on Node " + place.node.name,
        done.error(), now);
    return false;
  }
  succeeded(key);
  marked_[place.node.uid] = {value, now.steady + kWatchTells};
  return true;
}

// A Node whose Machine lives: it outlived another Machine, or marked itself.
void MachineSync::unmark(const SiteView& site, Now now) {
  visit_in_turn(site.nodes, std::string{last_unmarked_}, [&](const auto& entry) {
    const auto& [name, node] = entry;
    const bool is_wrong = !node.detach.empty() && machine_of(name) == MachineOf::kLives;
    const auto done_before = marked_.find(node.uid);
    if (!is_wrong || settings_.dry_run ||
        (done_before != marked_.end() && now.steady < done_before->second.until) ||
        !may_call(name, now)) {
      return;
    }
    last_unmarked_ = name;
    const Status done = context_.site.annotate(name, node.uid, {{names::kDetach, std::nullopt}});
    if (!done && done.error().code != Code::kNotFound) {
      failed(name,
             std::string{"could not remove annotation "} + names::kDetach + " from Node " + name,
             done.error(), now);
    } else {
      succeeded(name);
      marked_[node.uid] = {"", now.steady + kWatchTells};
    }
  });
}

void MachineSync::release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
                          Now now) {
  if (settings_.dry_run) {
    tell(machine, place, kDryRun, "would remove the hook: " + why, now);
    return;
  }
  const std::string key = key_of(machine);
  if (!mark(key, place, names::kDetached, now) || !may_call(key, now)) {
    return;
  }
  const Status done = context_.api.release(machine);
  if (!done && done.error().code != Code::kNotFound) {
    failed(key, "the hook of Machine " + key + " was not removed", done.error(), now);
    return;
  }
  succeeded(key);
  ++status_.released;
  tell(machine, place, kMachineReleased, "the hook is removed: " + why, now);
  machine.hooked = false;  // until the watch tells
}

void MachineSync::succeeded(const std::string& key) {
  troubles_.erase(key);
  backoff_.reset();
}

void MachineSync::failed(const std::string& key, const std::string& what, const Error& error,
                         Now now) {
  ++status_.failures;
  ++failed_calls_;
  const bool of_all = error.unanswered();
  const SteadyTime again = now.steady + backoff_.next(error.retry_after);
  if (of_all) {
    paused_until_ = again;
  }
  Trouble& own = troubles_[key];  // it may hang alone: the others first
  own.pause = std::clamp<Duration>(2 * own.pause, kFirstCallPause, kLongestCallPause);
  own.until = std::max(again, now.steady + own.pause);
  again_ = std::min(again_, again);
  if (call_problem_.empty()) {
    call_problem_ = what + ": " + error.message;
  }
}

}  // namespace slurmlet::op
