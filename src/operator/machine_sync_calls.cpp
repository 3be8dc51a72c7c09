#include "operator/machine_sync.h"

// Its calls of the API servers: few at a time, as they block, and again later where they fail.

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr EventReason kMachineReleased{"MachineReleased", false};

constexpr Duration kNextCalls = std::chrono::milliseconds{100};

}  // namespace

bool MachineSync::may_call(const std::string& key, Now now) {
  const SteadyTime pause = std::max(paused_until_, failed_.not_before(key));
  if (now.steady < pause || --calls_left_ < 0) {
    again_ = std::min(again_, std::max(pause, now.steady + kNextCalls));
    return false;
  }
  return may_act_();
}

// A watch may be behind for minutes where its server hangs, and for ever where that was restored
// from a backup: what cannot be undone is done by the server's own answer.
bool MachineSync::is_as_seen(kube::Machine& machine, Now now) {
  const std::string key = key_of(machine);
  if (!may_call(key, now)) {
    return false;
  }
  auto fresh = context_.api.get(machine);
  if (!fresh && fresh.error().code != Code::kNotFound) {
    failed(key, "could not read Machine " + key, fresh.error(), now);
    return false;
  }
  succeeded(key);
  if (fresh && *fresh == machine) {
    return may_act_();
  }
  if (fresh) {
    machine = *std::move(fresh);
  } else {
    machine.hooked = false;  // it is gone; the watch removes it
  }
  dirty_ = true;
  again_ = std::min(again_, now.steady + kNextCalls);
  return false;
}

// Whether the Node says so now.
bool MachineSync::mark(const std::string& key, const std::string& node, const char* value,
                       const SiteView& site, Now now) {
  KubeNode& known = site.nodes.at(node);
  const bool removes = *value == '\0';
  if (known.detach == value) {
    return true;
  }
  if (settings_.dry_run || !may_call(key, now)) {
    return false;
  }
  const Status done = context_.site.annotate(
      node, known.uid,
      {{names::kDetach, removes ? std::nullopt : std::optional<std::string>{value}}});
  if (!done && done.error().code != Code::kNotFound) {
    failed(key, std::string{"could not set annotation "} + names::kDetach + " on Node " + node,
           done.error(), now);
    return false;
  }
  succeeded(key);
  known.detach = value;  // until the watch tells
  return true;
}

// A Node whose Machine lives: it outlived another Machine, or marked itself.
void MachineSync::unmark(const SiteView& site, Now now) {
  round_robin(site.nodes.all(), std::string{last_unmarked_}, [&](const auto& entry) {
    const auto& [name, node] = entry;
    if (failed_calls_ > 0 || node.detach.empty() || node.belongs != Belongs::kHere ||
        machine_of(name) != MachineOf::kLives) {
      return;
    }
    const int before = calls_left_;
    (void)mark(name, name, "", site, now);
    if (before > 0 && calls_left_ < before) {
      last_unmarked_ = name;
    }
  });
}

// The write holds only for the Machine as it was seen (its resourceVersion).
void MachineSync::release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
                          const SiteView& site, Now now) {
  if (settings_.dry_run) {
    tell(machine, place, kDryRun, "would remove the hook: " + why, now);
    return;
  }
  const std::string key = key_of(machine);
  if ((place.has_node && !mark(key, place.node.name, names::kDetached, site, now)) ||
      !may_call(key, now)) {
    return;
  }
  const Status done = context_.api.release(machine);
  if (!done && done.error().code == Code::kConflict) {
    (void)is_as_seen(machine, now);  // somebody else wrote it
    return;
  }
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
  failed_.forget(key);
  backoff_.reset();
}

void MachineSync::failed(const std::string& key, const std::string& what, const Error& error,
                         Now now) {
  ++status_.failures;
  ++failed_calls_;
  const bool of_all =
      error.unanswered() && machines_.contains(key);  // a mark is less than a Machine
  const SteadyTime again = now.steady + backoff_.next(error.retry_after);
  if (of_all) {
    paused_until_ = again;
  }
  failed_.failed(key, now.steady, again);  // it may hang alone: the others first
  again_ = std::min(again_, again);
  if (call_problem_.empty()) {
    call_problem_ = what + ": " + error.message;
  }
}

}  // namespace slurmlet::op
