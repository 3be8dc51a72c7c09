#include "operator/machines/machine_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr EventReason kMachineWaits{"MachineWaits", false},
    kMachineDraining{"MachineDraining", false}, kMachineDrainFailed{"MachineDrainFailed", true};

}  // namespace

MachineSync::MachineSync(MachineSettings settings, MachineContext context,
                         std::function<bool()> may_act, const RunnerFactory& runner, Random random)
    : settings_(std::move(settings)),
      context_(context),
      jobs_(settings_.client, settings_.self, runner()),
      controllers_(settings_.client, runner()),
      machines_(context.machines, settings_.all_clusters),
      calls_(std::move(may_act), std::move(random)),
      events_(context.node_events, context.machine_events) {}

void MachineSync::forget() {
  machines_.forget();
  hosts_ = {};
  jobs_.forget();
  controllers_.forget();
  status_.without_backup.clear();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  calls_.clear_problem();
  events_.forget_all();
  dirty_ = true;
}

MachineOf MachineSync::machine_of(const std::string& node) const {
  const auto found = machines_.certain() ? claims_.find(node) : claims_.end();
  return found == claims_.end() ? MachineOf::kNone : found->second.machine;
}

void MachineSync::count_claims(const SiteView& site) {
  claims_.clear();
  for (const auto& [key, machine] : machines_.all()) {
    const KubeNode* node = machine.deleted_at ? node_of(machine, site.nodes) : nullptr;
    const std::string& name = node == nullptr ? machine.node : node->name;
    if (name.empty() || (machine.deleted_at && !machine.hooked)) {
      continue;
    }
    Claims& claims = claims_[name];
    ++claims.count;
    if (claims.machine != MachineOf::kLives) {
      claims.machine = machine.deleted_at ? MachineOf::kDeleting : MachineOf::kLives;
    }
  }
}

MachinePlace MachineSync::find(const kube::Machine& machine, const SiteView& site) const {
  const KubeNode* node = node_of(machine, site.nodes);
  const auto claims = claims_.find(node == nullptr ? machine.node : node->name);
  MachinePlace out = find_place(machine, site, claims == claims_.end() ? 0 : claims->second.count);
  // A host of another Slurm cluster may have the same name or address.
  if (out.unclear.empty() && !out.has_node && !out.never_provisioned && settings_.all_clusters) {
    out.unclear =
        std::string{
            "it has no Node, which would show of which Slurm cluster it is; set "
            "machineCluster where all Machines of its Cluster are of this one, or "
            "if no job runs on its host remove the hook: kubectl annotate machine "} +
        names::kMachineHook + "-";
  }
  if (!machines_.watch_problem().empty()) {  // it may be deleted and its host reused
    out.unclear = "its current state is unknown: " + machines_.watch_problem();
  }
  return out;
}

MachineFacts MachineSync::facts(const kube::Machine& machine, const MachinePlace& place,
                                const Pass& pass) {
  MachineFacts out;
  out.hooked = machine.hooked;
  out.deleted_at = machine.deleted_at;
  out.never_provisioned = place.never_provisioned;
  out.node = place.node;
  out.slurm = place.slurm;
  out.now = context_.server_time(pass.now.steady);
  out.policy = settings_.policy;
  out.unclear = pass.site.dump.problem(pass.now.wall);
  if (out.unclear.empty()) {
    out.unclear = place.unclear;
  }
  if (!machine.drain_policy.empty()) {
    out.policy = parse_drain_policy(machine.drain_policy).value_or(DrainPolicy{});
  }
  if (!out.unclear.empty()) {
    return out;
  }
  out.jobs = jobs_on(place, pass.now.steady);
  if (!out.jobs && !jobs_.problem().empty()) {
    out.unclear = "could not list the jobs on its Slurm node: " + jobs_.problem();
  }
  return out;
}

// Jobs only count once all nodes are drained, since more may start before that.
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

void MachineSync::evaluate(kube::Machine& machine, Pass& pass) {
  const MachinePlace place = find(machine, pass.site);
  if (place.is_elsewhere) {
    return;
  }
  ++status_.waiting;
  status_.waiting_since =
      std::min(status_.waiting_since.value_or(WallTime::max()), *machine.deleted_at);
  for (const SlurmNode* node : place.slurm) {
    pass.placed.insert(node->name);
  }
  if (!hands_over(machine, place, pass)) {
    return;
  }
  if (machine.controller && place.slurm.empty()) {
    release(place, machine, "another slurmctld is in charge", pass);
    return;
  }
  const MachineFacts known = facts(machine, place, pass);
  std::size_t& jobs = jobs_on_[key_of(machine)];
  jobs = known.jobs ? known.jobs->running + known.jobs->completing : jobs;
  status_.jobs += jobs;
  const MachineRuling ruling = rule_machine(known);
  for (const auto& [name, reason] : ruling.drains) {
    pass.changes.push_back(
        {name, DrainAction::kDrain, reason, place.has_node ? place.node.name : ""});
  }
  execute_ruling(ruling, place, machine, pass);
}

void MachineSync::evaluate_all(Pass& pass) {
  claims_.clear();
  calls_.begin_pass();
  status_.waiting = status_.jobs = 0;
  status_.waiting_since.reset();
  if (!machines_.ambiguous().empty()) {
    return;
  }
  count_claims(pass.site);
  // Calls per pass are limited, so the next pass starts behind the last Machine that used one.
  round_robin(machines_.all(), std::string{last_called_}, [&](auto& entry) {
    if (entry.second.hooked && entry.second.deleted_at) {
      const int before = calls_.left();
      evaluate(entry.second, pass);
      if (before > 0 && calls_.left() < before) {
        last_called_ = entry.first;
      }
    }
  });
  if (machines_.certain()) {
    undrain_next(pass);
    delete_left_behind(pass);
  }
  unmark(pass);
  const Machines& all = machines_.all();
  calls_.retain(
      [&](const auto& key) { return all.contains(key) || pass.site.nodes.find(key) != nullptr; });
  std::erase_if(status_.without_backup,
                [&](const auto& key) { return !all.contains(key) || !all.at(key).hooked; });
  std::erase_if(jobs_on_, [&](const auto& entry) { return !all.contains(entry.first); });
  events_.retain(all);
  if (!calls_.has_failed() && (calls_.has_called() || status_.waiting == 0)) {
    calls_.clear_problem();
  }
}

// Undrains all Slurm nodes of a host that were drained with its previous Machine, once the next
// Machine has its Node.
void MachineSync::undrain_next(Pass& pass) const {
  const SiteView& site = pass.site;
  const Machines& machines = machines_.all();
  std::set<const SlurmNode*> drained;
  for (const auto& [name, slurm] : site.dump.nodes()) {
    if (slurm.state.has("DRAIN") && is_machine_reason(slurm.reason)) {
      drained.insert(&slurm);
    }
  }
  for (auto entry = machines.begin(); !drained.empty() && entry != machines.end(); ++entry) {
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
          !pass.placed.contains(slurm->name) && is_final(ruling.action)) {
        pass.changes.push_back({slurm->name, ruling.action, ruling.text, place.node.name});
      }
    }
  }
}

// Deletes dynamic Slurm nodes of deleted Machines.
void MachineSync::delete_left_behind(Pass& pass) const {
  const SiteView& site = pass.site;
  for (const auto& [name, slurm] : site.dump.nodes()) {
    if (is_left_behind(slurm) && !pass.placed.contains(name) &&
        claimants(site.nodes.by_slurm(), slurm).empty()) {
      pass.changes.push_back({name, DrainAction::kDelete});
    }
  }
}

void MachineSync::execute_ruling(const MachineRuling& ruling, const MachinePlace& place,
                                 kube::Machine& machine, const Pass& pass) {
  if (ruling.action == MachineAction::kRelease) {
    release(place, machine, ruling.why, pass);
    return;
  }
  // A detached Node stays so until an action is required again.
  const bool stays = place.node.detach == names::kDetached && ruling.action == MachineAction::kWait;
  if (place.unclear.empty() && place.has_node && !stays &&
      machine_of(place.node.name) != MachineOf::kLives) {
    mark(key_of(machine), place.node.name, names::kDraining, pass);
  }
  if (ruling.action == MachineAction::kWait) {
    if (!ruling.why.empty()) {
      events_.report(machine, place, kMachineWaits,
                     drain_policy_problem(machine.drain_policy) + ruling.why, pass.now);
    }
  } else if (settings_.dry_run) {
    events_.report(machine, place, kDryRun, "dry run: " + ruling.why, pass.now);
  } else if (ruling.action == MachineAction::kDrain) {
    events_.report(machine, place, kMachineDraining, ruling.why, pass.now);
  } else {
    end_jobs(ruling, place, machine, pass.now);
  }
}

void MachineSync::end_jobs(const MachineRuling& ruling, const MachinePlace& place,
                           kube::Machine& machine, Now now) {
  const bool is_handled = std::ranges::all_of(
      place.slurm, [this](const SlurmNode* node) { return jobs_.is_handled(node->name); });
  if (is_handled || !is_current(machine, now)) {
    return;
  }
  events_.report(machine, place, kMachineWaits, ruling.why, now);
  for (const SlurmNode* node : place.slurm) {
    jobs_.end_jobs(node->name, key_of(machine));
  }
}

void MachineSync::report_command(const JobCommand& command, const SiteView& site, Now now) {
  const bool requeued = command.kind == JobCommand::Kind::kRequeue;
  const bool done = command.failure.empty();
  last_called_ = command.machine;  // slow commands take turns as well
  ++(!done ? status_.failures : requeued ? status_.requeued : status_.cancelled);
  const std::string what =
      done ? (requeued ? "requested a requeue of job " : "cancelled job ") + command.job
           : (requeued ? "could not requeue job " : "could not cancel job ") + command.job + ": " +
                 command.failure;
  const auto machine = machines_.all().find(command.machine);
  if (machine == machines_.all().end()) {
    log::info(what);
    return;
  }
  events_.report(machine->second, find(machine->second, site),
                 done ? kMachineDraining : kMachineDrainFailed, what, now, command.job);
}

void MachineSync::report_problem() {
  const std::string& problem = !machines_.ambiguous().empty()       ? machines_.ambiguous()
                               : !machines_.watch_problem().empty() ? machines_.watch_problem()
                                                                    : calls_.problem();
  if (problem != status_.problem && !problem.empty()) {
    log::warning("Machines: " + problem);
  }
  status_.problem = problem;
}

SteadyTime MachineSync::step(Now now, SiteNodes& nodes, const DumpedNodes& dump,
                             std::vector<NodeChange>& changes) {
  SteadyTime next = calls_.may_act() ? machines_.step(now, dirty_) : kNever;
  std::vector<JobCommand> done;
  const SiteView site{nodes, dump, hosts_};
  const auto dumps = dump.counters().dumps + dump.counters().failures;
  if (std::exchange(dumps_seen_, dumps) != dumps) {
    hosts_ = HostIndex{dump.nodes()};
    jobs_.new_dump();
    controllers_.new_dump(dump, now);
    dirty_ = true;
  }
  dirty_ = jobs_.step(now.steady, calls_.may_act(), done) || dirty_;
  dirty_ = controllers_.step(now.steady, calls_.may_act()) || dirty_;
  const bool can_evaluate = calls_.may_act() && machines_.answered() && nodes.known() &&
                            dump.report().dumped_at.has_value();
  if (can_evaluate && (dirty_ || now.steady >= calls_.next_pass())) {
    dirty_ = false;
    Pass pass{now, site, changes};
    evaluate_all(pass);
    const bool is_news = jobs_.step(now.steady, calls_.may_act(), done);
    if (controllers_.step(now.steady, calls_.may_act()) || is_news) {
      calls_.retry_at(now.steady);
    }
  }
  for (const JobCommand& command : done) {
    report_command(command, site, now);
  }
  report_problem();
  return std::min({next, can_evaluate ? calls_.next_pass() : kNever, jobs_.deadline(),
                   controllers_.deadline()});
}

}  // namespace slurmlet::op
