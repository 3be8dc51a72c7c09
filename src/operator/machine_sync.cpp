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
      jobs_(settings_.client, settings_.self, std::move(runner)),
      // Until it is tried again much may happen: by then the jobs must be known anew.
      backoff_(kJobsFresh, 2 * kJobsFresh, std::chrono::seconds{60}, std::move(random)),
      failed_(std::chrono::seconds{10}, std::chrono::minutes{1}) {}

void MachineSync::forget() {
  context_.machines.restart();
  known_ = false;
  hosts_ = {};
  watch_problem_.clear();
  doubt_.clear();
  jobs_.forget();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  call_problem_.clear();
  told_.clear();
  dirty_ = true;
}

MachineOf MachineSync::machine_of(const std::string& node) const {
  const auto found = certain() ? of_node_.find(node) : of_node_.end();
  return found == of_node_.end() ? MachineOf::kNone : found->second;
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
    const KubeNode* node = machine.deleted_at ? node_of(machine, site.nodes) : nullptr;
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
  const KubeNode* node = node_of(machine, site.nodes);
  const auto claims = claims_.find(node == nullptr ? machine.node : node->name);
  MachinePlace out = find_place(machine, site, claims == claims_.end() ? 0 : claims->second);
  // Names and addresses may be those of a host of another Slurm cluster, too.
  if (out.unclear.empty() && !out.has_node && !out.never_provisioned && settings_.all_clusters) {
    out.unclear =
        std::string{
            "it has no Node, which would show of which Slurm cluster it is; set "
            "machineCluster where all Machines of its Cluster are of this one, or "
            "if no job runs on its host remove the hook: kubectl annotate machine "} +
        names::kMachineHook + "-";
  }
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
  out.never_provisioned = place.never_provisioned;
  out.node = place.node;
  out.slurm = place.slurm;
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
  out.jobs = jobs_on(place, now.steady);
  if (!out.jobs && !jobs_.problem().empty()) {
    out.unclear = "could not list the jobs on its Slurm node: " + jobs_.problem();
  }
  return out;
}

// Jobs that are looked for before all are drained show nothing: others may follow.
std::optional<NodeJobs> MachineSync::jobs_on(const MachinePlace& place, SteadyTime now) {
  if (place.slurm.empty() || std::ranges::any_of(place.slurm, [](const SlurmNode* node) {
        return !node->state.has("DRAIN");
      })) {
    return std::nullopt;
  }
  std::optional<NodeJobs> all{NodeJobs{}};
  for (const SlurmNode* node : place.slurm) {
    jobs_.want(node->name);
    const auto some = jobs_.on(node->name, now);
    if (!some || !all) {
      all.reset();
      continue;
    }
    all->running += some->running;
    all->completing += some->completing;
    all->limited = all->limited && some->limited;
    all->last_ends = std::max(all->last_ends, some->last_ends);
  }
  return all;
}

void MachineSync::look_at(kube::Machine& machine, Now now, const SiteView& site,
                          std::vector<NodeChange>& changes) {
  const MachinePlace place = find(machine, site);
  if (place.is_elsewhere) {
    return;
  }
  ++status_.waiting;
  status_.waiting_since =
      std::min(status_.waiting_since.value_or(WallTime::max()), *machine.deleted_at);
  for (const SlurmNode* node : place.slurm) {
    placed_.insert(node->name);
  }
  const MachineFacts known = facts(machine, place, site, now);
  std::size_t& jobs = jobs_on_[key_of(machine)];
  jobs = known.jobs ? known.jobs->running + known.jobs->completing : jobs;
  status_.jobs += jobs;
  const MachineRuling ruling = rule_machine(known);
  for (const auto& [name, reason] : ruling.drains) {
    changes.push_back({name, DrainAction::kDrain, reason, place.has_node ? place.node.name : ""});
  }
  carry_out(ruling, place, machine, site, now);
}

void MachineSync::look_at_all(Now now, const SiteView& site, std::vector<NodeChange>& changes) {
  placed_.clear();
  of_node_.clear();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  if (!doubt_.empty()) {
    return;
  }
  count_claims(site);
  calls_left_ = kCallsPerStep;
  failed_calls_ = 0;
  // Calls are few, and there are Machines that would take some each time.
  round_robin(machines_, std::string{last_called_}, [&](auto& entry) {
    if (entry.second.hooked && entry.second.deleted_at) {
      const int before = calls_left_;
      look_at(entry.second, now, site, changes);
      if (before > 0 && calls_left_ < before) {
        last_called_ = entry.first;
      }
    }
  });
  if (certain()) {
    undrain_next(site, changes);
    delete_left_behind(site, changes);
  }
  unmark(site, now);
  failed_.retain(
      [&](const auto& key) { return machines_.contains(key) || site.nodes.find(key) != nullptr; });
  std::erase_if(jobs_on_, [this](const auto& entry) { return !machines_.contains(entry.first); });
  if (failed_calls_ == 0 && (calls_left_ < kCallsPerStep || status_.waiting == 0)) {
    call_problem_.clear();
  }
}

// What was drained with the host's last Machine, once the next one has its Node: all Slurm nodes of
// the host, also those that are no Node's.
void MachineSync::undrain_next(const SiteView& site, std::vector<NodeChange>& changes) const {
  std::set<const SlurmNode*> drained;
  for (const auto& [name, slurm] : site.dump.nodes()) {
    if (slurm.state.has("DRAIN") && is_machine_reason(slurm.reason)) {
      drained.insert(&slurm);
    }
  }
  for (auto entry = machines_.begin(); !drained.empty() && entry != machines_.end(); ++entry) {
    const kube::Machine& machine = entry->second;
    if (machine.deleted_at || machine_of(machine.node) != MachineOf::kLives) {
      continue;
    }
    const MachinePlace place = find(machine, site);
    for (const SlurmNode* slurm : place.slurm) {
      const auto others = claimants(site.nodes.by_slurm(), *slurm);
      const bool is_cordoned = std::ranges::any_of(
          others, [&](const auto& node) { return site.nodes.find(node)->unschedulable; });
      const DrainRuling ruling = rule_drain(place.node, *slurm, MachineOf::kLives);
      if (place.has_node && place.unclear.empty() && drained.contains(slurm) && !is_cordoned &&
          !placed_.contains(slurm->name) && is_final(ruling.action)) {
        changes.push_back({slurm->name, ruling.action, ruling.text, place.node.name});
      }
    }
  }
}

// Dynamic nodes of Machines that have gone.
void MachineSync::delete_left_behind(const SiteView& site, std::vector<NodeChange>& changes) const {
  for (const auto& [name, slurm] : site.dump.nodes()) {
    if (is_left_behind(slurm) && !placed_.contains(name) &&
        claimants(site.nodes.by_slurm(), slurm).empty()) {
      changes.push_back({name, DrainAction::kDelete});
    }
  }
}

void MachineSync::carry_out(const MachineRuling& ruling, const MachinePlace& place,
                            kube::Machine& machine, const SiteView& site, Now now) {
  if (ruling.action == MachineAction::kRelease) {
    release(place, machine, ruling.why, site, now);
    return;
  }
  // What is detached stays so until there is something to do again.
  const bool stays = place.node.detach == names::kDetached && ruling.action == MachineAction::kWait;
  if (place.unclear.empty() && place.has_node && !stays &&
      machine_of(place.node.name) != MachineOf::kLives) {
    mark(key_of(machine), place.node.name, names::kDraining, site, now);
  }
  if (ruling.action == MachineAction::kWait) {
    if (!ruling.why.empty()) {
      tell(machine, place, kMachineWaits, about_drain_policy(machine.drain_policy) + ruling.why,
           now);
    }
  } else if (settings_.dry_run) {
    tell(machine, place, kDryRun, "dry run: " + ruling.why, now);
  } else if (ruling.action == MachineAction::kDrain) {
    tell(machine, place, kMachineDraining, ruling.why, now);
  } else {
    end_jobs(ruling, place, machine, now);
  }
}

void MachineSync::end_jobs(const MachineRuling& ruling, const MachinePlace& place,
                           kube::Machine& machine, Now now) {
  const bool is_handled = std::ranges::all_of(
      place.slurm, [this](const SlurmNode* node) { return jobs_.is_handled(node->name); });
  if (is_handled || !is_as_seen(machine, now)) {
    return;
  }
  tell(machine, place, kMachineWaits, ruling.why, now);
  for (const SlurmNode* node : place.slurm) {
    jobs_.end_jobs(node->name, key_of(machine));
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
  const bool requeued = act.kind == SlurmAct::Kind::kRequeue;
  const bool done = act.failure.empty();
  last_called_ = act.machine;  // slow ones are few, too
  ++(!done ? status_.failures : requeued ? status_.requeued : status_.cancelled);
  const std::string what =
      done ? (requeued ? "requested a requeue of job " : "cancelled job ") + act.what
           : (requeued ? "could not requeue job " : "could not cancel job ") + act.what + ": " +
                 act.failure;
  const auto machine = machines_.find(act.machine);
  if (machine == machines_.end()) {
    log::info(what);
    return;
  }
  tell(machine->second, find(machine->second, site), done ? kMachineDraining : kMachineDrainFailed,
       what, now, act.what);
}

SteadyTime MachineSync::step(Now now, SiteNodes& nodes, const DumpedNodes& dump,
                             std::vector<NodeChange>& changes) {
  SteadyTime next = may_act_() ? watch(now) : kNever;
  std::vector<SlurmAct> done;
  const SiteView site{nodes, dump, hosts_};
  if (const auto dumps = dump.dumps() + dump.failures(); std::exchange(seen_, dumps) != dumps) {
    hosts_ = HostIndex{dump.nodes()};
    jobs_.new_dump(now.steady);
    dirty_ = true;
  }
  dirty_ = jobs_.step(now.steady, may_act_(), done) || dirty_;
  const bool can_look =
      may_act_() && known_ && nodes.known() && site.dump.report().dumped_at.has_value();
  if (can_look && (dirty_ || now.steady >= again_)) {
    dirty_ = false;
    again_ = kNever;
    look_at_all(now, site, changes);
    if (jobs_.step(now.steady, may_act_(), done)) {
      again_ = now.steady;
    }
  }
  for (const SlurmAct& act : done) {
    note(act, site, now);
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
