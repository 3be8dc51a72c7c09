#include "operator/machines/machine_sync.h"

// MachineSync's calls to the API servers.

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr EventReason kMachineReleased{"MachineReleased", false},
    kControllerHandover{"ControllerHandover", false},
    kControllerNotHandedOver{"ControllerNotHandedOver", true};

std::vector<std::string> host_names(const kube::Machine& machine) {
  std::vector<std::string> names = machine.addresses;
  names.push_back(machine.node);
  return names;
}

}  // namespace

std::vector<int> MachineSync::wake_fds() const {
  auto fds = jobs_.wake_fds();
  const auto more = controllers_.wake_fds();
  fds.insert(fds.end(), more.begin(), more.end());
  return fds;
}

std::set<std::string> MachineSync::leaving_controllers(SteadyTime now) const {
  std::set<std::string> out;
  for (const auto& [key, machine] : machines_.all()) {
    if (machine.controller && machine.deleted_at) {
      out.insert(controller_on(host_names(machine),
                               controllers_.seen(now).value_or(std::vector<node::Controller>{})));
    }
  }
  return out;
}

bool MachineSync::hands_over(kube::Machine& machine, const MachinePlace& place, const Pass& pass) {
  if (!machine.controller) {
    return true;
  }
  controllers_.want();
  const Now now = pass.now;
  if (const std::string failure = controllers_.take_failure(); !failure.empty()) {
    ++status_.failures;
    events_.report(machine, place, kControllerNotHandedOver, "scontrol takeover: " + failure, now,
                   "takeover");
  }
  const std::string unclear = !machines_.watch_problem().empty() ? machines_.watch_problem()
                                                                 : pass.site.dump.problem(now.wall);
  ControllerRuling ruling{ControllerAction::kUnknown,
                          unclear.empty() ? controllers_.problem() : unclear};
  if (ruling.why.empty()) {
    ruling = rule_controller({host_names(machine), controllers_.seen(now.steady),
                              leaving_controllers(now.steady), controllers_.took_over(now.steady),
                              controllers_.answered()});
  }
  if (ruling.action == ControllerAction::kNoBackup) {
    status_.without_backup.insert(key_of(machine));
  } else if (ruling.action != ControllerAction::kUnknown) {
    status_.without_backup.erase(key_of(machine));
  }
  if (ruling.action == ControllerAction::kTakeOver && settings_.dry_run) {
    events_.report(machine, place, kDryRun, "dry run: " + ruling.why, now);
  } else if (ruling.action == ControllerAction::kTakeOver) {
    if (is_current(machine, now) && controllers_.take_over(ruling.backup, now.steady)) {
      events_.report(machine, place, kControllerHandover, ruling.why, now);
    }
  } else if (ruling.action != ControllerAction::kHandedOver && !ruling.why.empty()) {
    events_.report(machine, place, kControllerNotHandedOver, ruling.why, now);
  }
  return ruling.action == ControllerAction::kHandedOver;
}

// A watch may lag by minutes if its server hangs, or forever after a restore from backup, so what
// cannot be undone requires a fresh read.
bool MachineSync::is_current(kube::Machine& machine, Now now) {
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
    machine.hooked = false;  // deleted; the watch will remove it
  }
  dirty_ = true;
  calls_.retry_at(now.steady + kNextCalls);
  return false;
}

// Returns whether the Node has this annotation now.
bool MachineSync::mark(const std::string& key, const std::string& node, const char* value,
                       const Pass& pass) {
  KubeNode& known = pass.site.nodes.at(node);
  const bool removes = *value == '\0';
  if (known.detach == value) {
    return true;
  }
  if (settings_.dry_run || !calls_.may_call(key, pass.now.steady)) {
    return false;
  }
  const Status done = context_.site.annotate(
      node, known.uid,
      {{names::kDetach, removes ? std::nullopt : std::optional<std::string>{value}}});
  if (!done && done.error().code != Code::kNotFound) {
    failed(key, std::string{"could not set annotation "} + names::kDetach + " on Node " + node,
           done.error(), pass.now);
    return false;
  }
  calls_.succeeded(key);
  known.detach = value;  // until the watch shows it
  return true;
}

// Removes the annotation from Nodes with a live Machine: it is an older Machine's, or the Node's
// own.
void MachineSync::unmark(const Pass& pass) {
  round_robin(pass.site.nodes.all(), std::string{last_unmarked_}, [&](const auto& entry) {
    const auto& [name, node] = entry;
    if (calls_.has_failed() || node.detach.empty() || node.belongs != Belongs::kHere ||
        machine_of(name) != MachineOf::kLives) {
      return;
    }
    const int before = calls_.left();
    (void)mark(name, name, "", pass);
    if (before > 0 && calls_.left() < before) {
      last_unmarked_ = name;
    }
  });
}

// The write fails if the Machine has changed (resourceVersion).
void MachineSync::release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
                          const Pass& pass) {
  const Now now = pass.now;
  if (settings_.dry_run) {
    events_.report(machine, place, kDryRun, "would remove the hook: " + why, now);
    return;
  }
  const std::string key = key_of(machine);
  if ((place.has_node && !mark(key, place.node.name, names::kDetached, pass)) ||
      !calls_.may_call(key, now.steady)) {
    return;
  }
  const Status done = context_.api.release(machine);
  if (!done && done.error().code == Code::kConflict) {
    (void)is_current(machine, now);  // reads it again
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
  // A failure to annotate a Node does not delay Machines.
  calls_.failed(key, what, error, now.steady, error.unanswered() && machines_.all().contains(key));
}

}  // namespace slurmlet::op
