#include "operator/machines/machine_sync.h"

// Its calls of the API servers: few at a time, as they block, and again later where they fail.

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr EventReason kMachineReleased{"MachineReleased", false};

}  // namespace

// A watch may be behind for minutes where its server hangs, and for ever where that was restored
// from a backup: what cannot be undone is done by the server's own answer.
bool MachineSync::is_as_seen(kube::Machine& machine, Now now) {
  const std::string key = key_of(machine);
  if (!calls_.may_call(key, now.steady)) {
    return false;
  }
  auto fresh = context_.api.get(machine);
  if (!fresh && fresh.error().code != Code::kNotFound) {
    failed(key, "could not read Machine " + key, fresh.error(), now);
    return false;
  }
  calls_.succeeded(key);
  if (fresh && *fresh == machine) {
    return calls_.may_act();
  }
  if (fresh) {
    machine = *std::move(fresh);
  } else {
    machine.hooked = false;  // it is gone; the watch removes it
  }
  dirty_ = true;
  calls_.look_again(now.steady + kNextCalls);
  return false;
}

// Whether the Node says so now.
bool MachineSync::mark(const std::string& key, const std::string& node, const char* value,
                       const Look& look) {
  KubeNode& known = look.site.nodes.at(node);
  const bool removes = *value == '\0';
  if (known.detach == value) {
    return true;
  }
  if (settings_.dry_run || !calls_.may_call(key, look.now.steady)) {
    return false;
  }
  const Status done = context_.site.annotate(
      node, known.uid,
      {{names::kDetach, removes ? std::nullopt : std::optional<std::string>{value}}});
  if (!done && done.error().code != Code::kNotFound) {
    failed(key, std::string{"could not set annotation "} + names::kDetach + " on Node " + node,
           done.error(), look.now);
    return false;
  }
  calls_.succeeded(key);
  known.detach = value;  // until the watch shows it
  return true;
}

// A Node whose Machine lives: it outlived another Machine, or marked itself.
void MachineSync::unmark(const Look& look) {
  round_robin(look.site.nodes.all(), std::string{last_unmarked_}, [&](const auto& entry) {
    const auto& [name, node] = entry;
    if (calls_.has_failed() || node.detach.empty() || node.belongs != Belongs::kHere ||
        machine_of(name) != MachineOf::kLives) {
      return;
    }
    const int before = calls_.left();
    (void)mark(name, name, "", look);
    if (before > 0 && calls_.left() < before) {
      last_unmarked_ = name;
    }
  });
}

// The write holds only for the Machine as it was seen (its resourceVersion).
void MachineSync::release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
                          const Look& look) {
  const Now now = look.now;
  if (settings_.dry_run) {
    events_.report(machine, place, kDryRun, "would remove the hook: " + why, now);
    return;
  }
  const std::string key = key_of(machine);
  if ((place.has_node && !mark(key, place.node.name, names::kDetached, look)) ||
      !calls_.may_call(key, now.steady)) {
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
  calls_.succeeded(key);
  ++status_.released;
  events_.report(machine, place, kMachineReleased, "the hook is removed: " + why, now);
  machine.hooked = false;  // until the watch shows it
}

void MachineSync::failed(const std::string& key, const std::string& what, const Error& error,
                         Now now) {
  ++status_.failures;
  // A mark is less than a Machine.
  calls_.failed(key, what, error, now.steady, error.unanswered() && machines_.all().contains(key));
}

}  // namespace slurmlet::op
