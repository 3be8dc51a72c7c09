#include "operator/machine_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr int kCallsPerStep = 5;  // they block

// An API server keeps an Event for an hour.
constexpr Duration kTellAgain = std::chrono::minutes{30};

constexpr EventReason kMachineWaits{"MachineWaits", false},
    kMachineDraining{"MachineDraining", false}, kMachineDrainFailed{"MachineDrainFailed", true};

}  // namespace

MachineSync::MachineSync(MachineSettings settings, MachineContext context,
                         std::function<bool()> may_act, std::unique_ptr<CommandRunner> runner,
                         Random random)
    : settings_(std::move(settings)),
      context_(context),
      may_act_(std::move(may_act)),
      jobs_(settings_.client, std::move(runner)),
      // Until it is tried again much may happen: by then the jobs must be known anew.
      backoff_(kJobsFresh, 2 * kJobsFresh, std::chrono::seconds{60}, std::move(random)) {}

void MachineSync::forget() {
  jobs_.forget();
  ended_.forget();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  call_problem_.clear();
  told_.clear();
  marked_.clear();
  dirty_ = true;
}

MachineOf MachineSync::machine_of(const std::string& node) const {
  const auto found = certain() ? of_node_.find(node) : of_node_.end();
  return found == of_node_.end() ? MachineOf::kNone : found->second;
}

const KubeNode* MachineSync::stand_in(const std::string& slurm_node) const {
  const auto found = stand_ins_.find(slurm_node);
  return found == stand_ins_.end() ? nullptr : &found->second;
}

SteadyTime MachineSync::watch(Now now) {
  using Type = kube::WatchEvent<kube::Machine>::Type;
  std::vector<kube::WatchEvent<kube::Machine>> events;
  const SteadyTime next = context_.machines.step(now, events);
  for (auto& event : events) {
    dirty_ = true;
    if (event.type == Type::kReplaced) {
      machines_.clear();
      known_ = true;
    }
    for (auto& machine : event.objects) {
      const std::string key = key_of(machine);
      if (event.type == Type::kDeleted) {
        machines_.erase(key);
      } else {
        machines_.insert_or_assign(key, std::move(machine));
      }
    }
  }
  if (!events.empty()) {
    std::erase_if(told_, [this](const auto& entry) { return !machines_.contains(entry.first); });
    doubt_ = settings_.all_clusters ? doubt_about(machines_) : "";
  }
  const auto error = context_.machines.last_error();
  const bool absent = error && error->code == Code::kNotFound;
  if (absent && !absent_) {
    log::info("there are no Machines of Cluster API; they are looked for every few minutes");
    machines_.clear();
    dirty_ = true;
  }
  absent_ = absent;
  watch_problem_ = error && !absent ? error->message : "";
  return next;
}

void MachineSync::count_claims(const SiteView& site) {
  of_node_.clear();
  claims_.clear();
  for (const auto& [key, machine] : machines_) {
    const KubeNode* node = machine.deleted_at ? node_of(machine, site) : nullptr;
    const std::string& name = node == nullptr ? machine.node : node->name;
    if (name.empty() || (machine.deleted_at && !machine.hooked)) {
      continue;
    }
    ++claims_[name];
    MachineOf& state = of_node_[name];
    if (state != MachineOf::kLives) {
      state = machine.deleted_at ? MachineOf::kDeleting : MachineOf::kLives;
    }
  }
}

MachinePlace MachineSync::find(const kube::Machine& machine, const SiteView& site) const {
  const KubeNode* node = node_of(machine, site);
  const auto claims = claims_.find(node == nullptr ? machine.node : node->name);
  MachinePlace out = find_place(machine, site, claims == claims_.end() ? 0 : claims->second);
  if (!watch_problem_.empty()) {  // it may be gone by now, and its host be another's
    out.unclear = "its current state is unknown: " + watch_problem_;
  }
  return out;
}

MachineFacts MachineSync::facts(const kube::Machine& machine, const MachinePlace& place,
                                const SiteView& site, Now now) {
  MachineFacts out;
  out.hooked = machine.hooked;
  out.deleted_at = machine.deleted_at;
  out.node = place.node;
  out.dumped = place.dumped;
  out.now_known = place.now_known;
  out.now = context_.server_time(now.steady);
  out.policy = settings_.policy;
  out.unclear = site.dump.problem(now.wall);
  if (out.unclear.empty()) {
    out.unclear = place.unclear;
  }
  if (!machine.drain_policy.empty()) {
    out.policy = parse_drain_policy(machine.drain_policy).value_or(DrainPolicy{});
  }
  if (!out.unclear.empty()) {
    return out;
  }
  // Jobs that are looked for before the node is drained tell nothing: others may follow.
  const std::string& name = place.slurm_name();
  if (place.dumped == nullptr || place.dumped->state.has("DRAIN")) {
    jobs_.want(name);
    if (!jobs_.problem().empty()) {
      out.unclear = "could not list the jobs on Slurm node " + name + ": " + jobs_.problem();
    }
  }
  out.jobs = jobs_.on(name, now.steady);
  return out;
}

void MachineSync::look_at(kube::Machine& machine, Now now, const SiteView& site,
                          std::vector<std::string>& drain) {
  ++status_.waiting;
  status_.waiting_since =
      std::min(status_.waiting_since.value_or(WallTime::max()), *machine.deleted_at);
  const MachinePlace place = find(machine, site);
  const MachineFacts known = facts(machine, place, site, now);
  std::size_t& jobs = jobs_on_[key_of(machine)];
  jobs = known.jobs ? known.jobs->running + known.jobs->completing : jobs;
  status_.jobs += jobs;
  const MachineRuling ruling =
      watch_problem_.empty() && ended_.is_gone(machine.uid, site, now.steady)
          ? MachineRuling{MachineAction::kRelease, "its dynamic node was deleted"}
          : rule_machine(known);
  carry_out(ruling, place, machine, now, drain);
}

void MachineSync::look_at_all(Now now, const SiteView& site, std::vector<std::string>& drain) {
  stand_ins_.clear();
  of_node_.clear();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  if (!doubt_.empty()) {
    return;
  }
  count_claims(site);
  calls_left_ = kCallsPerStep;
  failed_calls_ = 0;
  // Calls are few, and there are Machines that would take some each time: whoever comes behind the
  // one that had the last is first.
  visit_in_turn(machines_, std::string{last_called_}, [&](auto& entry) {
    if (entry.second.hooked && entry.second.deleted_at) {
      const int before = calls_left_;
      look_at(entry.second, now, site, drain);
      if (before > 0 && calls_left_ < before) {
        last_called_ = entry.first;
      }
    }
  });
  std::erase_if(marked_, [now](const auto& entry) { return now.steady >= entry.second.until; });
  if (watch_problem_.empty()) {
    look_at_ended(site, drain, now);
  }
  unmark(site, now);
  std::erase_if(troubles_, [now](const auto& entry) {
    return now.steady >= entry.second.until + 2 * entry.second.pause;
  });
  std::erase_if(jobs_on_, [this](const auto& entry) { return !machines_.contains(entry.first); });
  if (failed_calls_ == 0 && (calls_left_ < kCallsPerStep || status_.waiting == 0)) {
    call_problem_.clear();
  }
}

void MachineSync::carry_out(const MachineRuling& ruling, const MachinePlace& place,
                            kube::Machine& machine, Now now, std::vector<std::string>& drain) {
  const std::string& slurm_name = place.slurm_name();
  if (ruling.action == MachineAction::kRelease) {
    release(place, machine, ruling.why, now);
    return;
  }
  // What is detached stays so until there is something to do again.
  const bool stays = place.node.detach == names::kDetached && ruling.action == MachineAction::kWait;
  if (place.unclear.empty() && !stays && machine_of(place.node.name) != MachineOf::kLives) {
    mark(key_of(machine), place, names::kDraining, now);
  }
  if (ruling.action == MachineAction::kWait) {
    if (!ruling.why.empty()) {
      tell(machine, place, kMachineWaits, about_drain_policy(machine.drain_policy) + ruling.why,
           now);
    }
  } else if (settings_.dry_run) {
    tell(machine, place, kDryRun, "dry run: " + ruling.why, now);
  } else if (ruling.action == MachineAction::kDrain) {
    stand_ins_.insert_or_assign(slurm_name, place.node);
    drain.push_back(slurm_name);
    tell(machine, place, kMachineDraining, ruling.why, now);
  } else if (jobs_.is_handled(slurm_name) || !is_as_seen(machine, now)) {
    return;
  } else if (ruling.action == MachineAction::kEndJobs) {
    tell(machine, place, kMachineWaits, ruling.why, now);
    jobs_.end_jobs(slurm_name, key_of(machine));
  } else {
    jobs_.delete_node(slurm_name, key_of(machine));
  }
}

void MachineSync::look_at_ended(const SiteView& site, std::vector<std::string>& drain, Now now) {
  for (const auto& node : ended_.look(site, machines_, now.steady)) {
    const std::string& name = node.stand_in.name;
    if (node.is_dead) {
      jobs_.want(name);
      if (const auto jobs = jobs_.on(name, now.steady);
          jobs && jobs->running + jobs->completing == 0) {
        jobs_.delete_node(name, "");
      }
    } else {
      stand_ins_.insert_or_assign(name, node.stand_in);
      drain.push_back(name);
    }
  }
}

void MachineSync::tell(const kube::Machine& machine, const MachinePlace& place,
                       const EventReason& reason, const std::string& message, Now now,
                       const std::string& job) {
  Told& told = told_[key_of(machine)][job];
  const bool is_news = std::exchange(told.message, message) != message;
  if (!is_news && now.steady - told.at < kTellAgain) {
    return;
  }
  told.at = now.steady;
  if (is_news) {
    (reason.warning ? log::warning : log::info)("Machine " + key_of(machine) + ": " + message);
  }
  context_.machine_events.emit({"Machine", machine.namespace_name, machine.name, machine.uid,
                                "cluster.x-k8s.io/" + machine.api_version},
                               reason.warning, reason.name, message, message, now);
  if (place.has_node) {
    const std::string& name = place.node.name;
    context_.node_events.emit({"Node", "", name, name}, reason.warning, reason.name, message,
                              message, now);
  }
}

void MachineSync::note(const SlurmAct& act, const SiteView& site, Now now) {
  static constexpr struct {
    const char *done, *failed;
  } kWords[] = {{"requested a requeue of job ", "could not requeue job "},
                {"cancelled job ", "could not cancel job "},
                {"deleted dynamic node ", "could not delete dynamic node "}};
  std::uint64_t* const counters[] = {&status_.requeued, &status_.cancelled,
                                     &status_.records_deleted};
  const auto kind = static_cast<std::size_t>(act.kind);
  last_called_ = act.machine.empty() ? last_called_ : act.machine;  // slow ones are few, too
  const bool done = act.failure.empty();
  ++(done ? *counters[kind] : status_.failures);
  const std::string what =
      done ? kWords[kind].done + act.what : kWords[kind].failed + act.what + ": " + act.failure;
  const auto machine = machines_.find(act.machine);
  if (machine == machines_.end()) {
    log::info(what);  // it came back without its Machine
    return;
  }
  if (done && act.kind == SlurmAct::Kind::kDelete) {
    ended_.note(act.what, machine->second.uid, now);
    dirty_ = true;
  }
  tell(machine->second, find(machine->second, site), done ? kMachineDraining : kMachineDrainFailed,
       what, now, act.what);
}

SteadyTime MachineSync::step(Now now, const SiteView& site, std::vector<std::string>& drain) {
  SteadyTime next = watch(now);
  std::vector<SlurmAct> done;
  const auto dumps = site.dump.dumps() + site.dump.failures();
  if (std::exchange(seen_, dumps) != dumps) {
    jobs_.new_dump(now.steady);
    dirty_ = true;
  }
  dirty_ = jobs_.step(now.steady, may_act_(), done) || dirty_;
  for (const SlurmAct& act : done) {
    note(act, site, now);
  }
  const bool can_look = may_act_() && known_ && site.dump.report().dumped_at;
  if (can_look && (dirty_ || now.steady >= again_)) {
    dirty_ = false;
    again_ = kNever;
    look_at_all(now, site, drain);
    done.clear();
    (void)jobs_.step(now.steady, may_act_(), done);
  }
  const std::string& problem = !doubt_.empty()           ? doubt_
                               : !watch_problem_.empty() ? watch_problem_
                                                         : call_problem_;
  if (problem != status_.problem && !problem.empty()) {
    log::warning("Machines: " + problem);
  }
  status_.problem = problem;
  return std::min({next, can_look ? again_ : kNever, jobs_.deadline()});
}

}  // namespace slurmlet::op
