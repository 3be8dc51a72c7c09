#include "operator/machines/scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/vocabulary.h"
#include "slurm/answers/record_text.h"

namespace slurmlet::op {
namespace {

constexpr Duration kAfterAction = std::chrono::seconds{2};

std::string name_of(const kube::MachineDeployment& deployment) {
  return deployment.namespace_name + "/" + deployment.name;
}

const kube::Machine* find(const MachineSync& machines, const std::string& key) {
  const auto found = machines.machines().all().find(key);
  return found == machines.machines().all().end() ? nullptr : &found->second;
}

std::string joined(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    out += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? out + fmt::format(" and {} more", names.size() - kMost) : out;
}

}  // namespace

Scaler::Scaler(ScaleSettings settings, ScaleContext context, std::function<bool()> may_act,
               std::unique_ptr<CommandRunner> runner)
    : settings_(std::move(settings)),
      context_(context),
      may_act_(std::move(may_act)),
      queue_(settings_.client, settings_.self, settings_.interval, std::move(runner)),
      up_({settings_.up_per_minute / 60.0, static_cast<double>(settings_.up_per_minute)}) {}

void Scaler::forget() {
  deployments_.clear();
  facts_ = {};
  reported_.clear();
  forget_queue();
}

// What is not known is not shown as it was.
void Scaler::forget_queue() {
  plan_.clear();
  status_.partitions.clear();
  status_.groups.clear();
  status_.unknown_reasons.clear();
  status_.too_large = 0;
}

// Returns whether the server answers. What it rejects waits for the next interval.
bool Scaler::finish(const std::string& what, const Status& done, Now now) {
  if (done || done.error().code == Code::kConflict || done.error().code == Code::kNotFound) {
    queue_.soon(now.steady + kAfterAction);
    return true;
  }
  failed(what, done.error());
  return !done.error().unanswered();
}

void Scaler::failed(const std::string& what, const Error& error) {
  ++status_.failures;
  const std::string problem = what + ": " + error.message;
  if (std::exchange(status_.problem, problem) != problem) {
    log::warning("autoscaling: " + problem);
  }
}

void Scaler::report(const Deployment& deployment, bool warning, const std::string& message,
                    Now now) {
  const auto& object = deployment.object;
  if (std::exchange(reported_[name_of(object)], message) == message) {
    return;
  }
  log::info("MachineDeployment " + name_of(object) + ": " + message);
  context_.events.emit({"MachineDeployment", object.namespace_name, object.name, object.uid,
                        "cluster.x-k8s.io/" + object.api_version},
                       warning, settings_.dry_run ? kDryRun.name : "Scaling", message, message,
                       now);
}

// The MachineDeployments on whose Machines there is the operator's mark or drain.
std::set<std::string> Scaler::begun(const Site& site) {
  const auto& slurm = site.dump.nodes();
  const bool drains =
      std::ranges::any_of(slurm, [](const auto& one) { return is_leaving(one.second); });
  const auto is_drained = [&site](const kube::Machine& machine) {
    const MachinePlace place = site.machines.place(machine, site.nodes, site.dump);
    return std::ranges::any_of(place.slurm, [](const auto* one) { return is_leaving(*one); });
  };
  std::set<std::string> out;
  for (const auto& [key, machine] : site.machines.machines().all()) {
    if (!machine.deployment.empty() && !machine.deleted_at &&
        (machine.delete_mark == node::vocabulary::kDeleteMachineBy ||
         (drains && is_drained(machine)))) {
      out.insert(deployment_key(machine));
    }
  }
  return out;
}

// The deployments are read before the jobs, so that a write by them fails if either has changed.
void Scaler::begin(Now now, const Site& site) {
  const auto unfinished = begun(site);
  const auto foreign = deployments_elsewhere(site.machines.machines().all(), site.nodes);
  auto list = context_.api.list();
  deployments_.clear();
  if (!list) {
    failed("the MachineDeployments could not be read", list.error());
  }
  std::set<std::string> clusters;
  for (auto& object : list ? *list : std::vector<kube::MachineDeployment>{}) {
    ScalePolicy policy = read_scale_policy(object.annotations);
    if (object.deleting || foreign.contains(name_of(object)) ||
        (policy.by == ScaledBy::kNone && policy.problem.empty() &&
         !unfinished.contains(name_of(object)))) {
      continue;
    }
    Deployment one{std::move(object), std::move(policy)};
    if (!one.policy.problem.empty()) {
      report(one, true, "is not scaled: " + one.policy.problem, now);
      continue;
    }
    clusters.insert(one.object.namespace_name + "/" + one.object.cluster);
    deployments_.push_back(std::move(one));
  }
  // Another Slurm cluster may have partitions of the same names.
  if (const std::string doubt = site.machines.machines().doubt_with(clusters); !doubt.empty()) {
    for (const auto& one : deployments_) {
      report(one, true, "is not scaled: " + doubt, now);
    }
    deployments_.clear();
  }
  facts_ = {};
  for (const auto& [name, slurm] : site.dump.nodes()) {
    if (is_drained_idle(slurm)) {
      facts_.drained.insert(name);
    }
  }
  if (deployments_.empty()) {
    forget_queue();
    queue_.skip(now.steady);
  } else {
    queue_.start(now.steady);
  }
}

void Scaler::learn(const Deployment& deployment, const std::vector<const SlurmNode*>& slurm,
                   ScaleGroup& group) {
  ScaleGroup& known = learned_[deployment.object.uid];
  if (!known.size && !slurm.empty()) {
    if (const auto record = slurm::read_record_text(slurm.front()->text)) {
      known.size = MachineSize{record->effective_cpus.value_or(record->cpus.value_or(0)),
                               record->real_memory_mib.value_or(0), 0};
      for (const auto& gres : record->gres) {
        known.size->gpus += gres.name == "gpu" ? gres.count : 0;
      }
      known.features = {record->features.begin(), record->features.end()};
    }
  }
  const ScalePolicy& policy = deployment.policy;
  group.size = known.size;
  if (policy.size.cpus > 0) {  // the others count only beside it
    group.size = policy.size;
  }
  group.features = policy.features.value_or(known.features);
}

ScaleGroup Scaler::group(const Deployment& deployment,
                         const std::vector<const kube::Machine*>& machines, const Site& site,
                         Now now) {
  const auto& [object, policy] = deployment;
  ScaleGroup out{.name = name_of(object),
                 .by = policy.by,
                 .partitions = policy.partitions,
                 .features = {},
                 .size = {},
                 .min = policy.min,
                 .max = policy.max,
                 .replicas = object.replicas,
                 .idle_after = policy.idle_after,
                 .machines = {}};
  std::vector<const SlurmNode*> slurm;
  std::string bare;
  for (const kube::Machine* machine : machines) {
    if (!machine->hooked && policy.by == ScaledBy::kQueue) {
      // Cluster API may choose it, whatever is marked: in a rollout, or as another has marked it.
      out.min = std::max(out.min, object.replicas);
      bare = key_of(*machine);
    }
    const MachinePlace place = site.machines.place(*machine, site.nodes, site.dump);
    out.machines.push_back(scale_machine(*machine, place, facts_, policy, now.wall));
    slurm.insert(slurm.end(), place.slurm.begin(), place.slurm.end());
  }
  learn(deployment, slurm, out);
  if (const std::string why = why_not_scaled(out, bare); !why.empty()) {
    report(deployment, true, why, now);
  }
  return out;
}

void Scaler::plan(const std::string& machine, NodeChange change, const Site& site) {
  const kube::Machine* found = find(site.machines, machine);
  if (found == nullptr) {
    return;
  }
  const MachinePlace place = site.machines.place(*found, site.nodes, site.dump);
  if (change.action == DrainAction::kDrain) {
    change.reason = std::string{kScaleReason} + " [" + found->uid + "]";
  }
  for (const SlurmNode* slurm : place.slurm) {
    change.slurm_node = slurm->name;
    plan_[slurm->name] = change;
  }
}

// What of the plan the last dump still allows.
std::vector<NodeChange> Scaler::planned(const DumpedNodes& dump) const {
  std::vector<NodeChange> out;
  for (const auto& [name, change] : plan_) {
    const SlurmNode* slurm = dump.find(name);
    if (slurm != nullptr &&
        (change.action == DrainAction::kDrain ? is_idle(*slurm) : is_leaving(*slurm))) {
      out.push_back(change);
    }
  }
  // Otherwise a prolog that fails would drain the node with our Reason.
  for (const auto& [name, slurm] : dump.nodes()) {
    if (!slurm.state.has("DRAIN") && is_scale_reason(slurm.reason)) {
      out.push_back({name, DrainAction::kSetReason, std::string{kUndrainedReason}});
    }
  }
  return out;
}

// A watch may lag, so what cannot be undone requires a fresh read.
bool Scaler::are_current(const ScaleGroup& group, const Site& site) {
  return std::ranges::all_of(group.machines, [&](const ScaleMachine& one) {
    const kube::Machine* machine = find(site.machines, one.name);
    if (!one.marked) {
      return true;
    }
    const auto fresh =
        machine == nullptr ? Result<kube::Machine>{Error{}} : context_.machines.get(*machine);
    return fresh && !fresh->deleted_at && fresh->hooked &&
           fresh->delete_mark == machine->delete_mark;
  });
}

bool Scaler::set_replicas(const Deployment& deployment, const ScaleGroup& group,
                          const ScaleRuling& ruling, const Site& site, Now now) {
  const bool is_up = ruling.replicas > group.replicas;
  const std::string what =
      fmt::format("from {} to {} Machines: {}", group.replicas, ruling.replicas, ruling.why);
  if (settings_.dry_run) {
    report(deployment, false, "would scale " + what, now);
    return true;
  }
  if ((!is_up && !are_current(group, site)) || !may_act_()) {
    return true;
  }
  const Status done = context_.api.set_replicas(deployment.object, ruling.replicas);
  const bool answers =
      finish("MachineDeployment " + group.name + " could not be scaled", done, now);
  if (!done) {
    return answers;
  }
  ++(is_up ? status_.ups : status_.downs);
  for (auto n = group.replicas; n < ruling.replicas; ++n) {
    (void)up_.take(now.steady);
  }
  reported_.erase(group.name);  // each is reported
  report(deployment, false, "scaled " + what, now);
  return true;
}

bool Scaler::execute(const Deployment& deployment, const ScaleGroup& group,
                     const ScaleRuling& ruling, const Site& site, Now now) {
  if (ruling.replicas != group.replicas && !set_replicas(deployment, group, ruling, site, now)) {
    return false;
  }
  if (settings_.dry_run) {
    if (!ruling.drain.empty()) {
      report(deployment, false, "would drain and remove the idle " + joined(ruling.drain), now);
    }
    return true;
  }
  for (const auto& [machine, why] : ruling.undrain) {
    plan(machine, {"", DrainAction::kUndrain, "", "", why}, site);
  }
  for (const auto& machine : ruling.drain) {
    plan(machine, {"", DrainAction::kDrain}, site);
  }
  if (!ruling.drain.empty()) {
    report(deployment, false, "drains the idle " + joined(ruling.drain), now);
  }
  for (const bool marks : {false, true}) {
    for (const auto& name : marks ? ruling.mark : ruling.unmark) {
      const kube::Machine* machine = find(site.machines, name);
      if (machine != nullptr && may_act_() &&
          !finish("Machine " + name + " could not be annotated", context_.api.mark(*machine, marks),
                  now)) {
        return false;
      }
    }
  }
  return true;
}

void Scaler::evaluate(Now now, const Site& site) {
  const auto too_large = status_.too_large;
  forget_queue();
  std::vector<ScaleGroup> groups;
  const auto failures = status_.failures;
  std::map<std::string, std::vector<const kube::Machine*>> machines;  // by MachineDeployment
  for (const auto& [key, machine] : site.machines.machines().all()) {
    if (!machine.deleted_at && !machine.deployment.empty()) {
      machines[deployment_key(machine)].push_back(&machine);
    }
  }
  for (const auto& deployment : deployments_) {
    ScaleGroup one = group(deployment, machines[name_of(deployment.object)], site, now);
    for (const auto& partition : one.partitions) {
      status_.partitions[partition];
    }
    groups.push_back(std::move(one));
  }
  count_jobs(facts_.jobs, status_);
  count_nodes(site.dump.nodes(), status_);
  std::int64_t may_add = 0;
  for (TokenBucket left = up_; left.take(now.steady);) {
    ++may_add;
  }
  const ScaleRulings rulings = rule_scale(groups, facts_.jobs.pending, may_add);
  if (too_large != rulings.too_large_jobs && !rulings.too_large.empty()) {
    log::warning("autoscaling: no machine can hold job " + joined(rulings.too_large));
  }
  status_.too_large = rulings.too_large_jobs;
  bool answers = true;  // else each of many would be waited for
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ScaleGroup& group = groups[i];
    const ScaleRuling& ruling = rulings.groups[i];
    if (!group.partitions.empty()) {
      const auto late =
          std::ranges::count(group.machines, ScaleMachine::State::kLate, &ScaleMachine::state);
      status_.groups.push_back(
          {group.name, group.partitions, ruling.wanted, group.replicas, group.max, late});
    }
    answers = answers && execute(deployments_[i], group, ruling, site, now);
  }
  if (failures == status_.failures) {
    status_.problem.clear();
  }
}

SteadyTime Scaler::step(Now now, const MachineSync& machines, SiteNodes& nodes,
                        const DumpedNodes& dump, std::vector<NodeChange>& changes) {
  const bool can = may_act_() && machines.machines().certain() && nodes.known() &&
                   dump.report().dumped_at && dump.problem(now.wall).empty();
  bool is_new = std::exchange(dumps_seen_, dump.counters().dumps) != dump.counters().dumps;
  if (auto queue = queue_.poll(now.steady); queue && can) {
    facts_.jobs = *std::move(queue);
    evaluate(now, {machines, nodes, dump});
    is_new = true;
  } else if (!can || !queue_.problem().empty()) {
    forget_queue();
  }
  if (!queue_.problem().empty() && queue_.problem() != status_.problem) {
    status_.problem = queue_.problem();
    log::warning("autoscaling: the jobs are not known: " + status_.problem);
  }
  if (can && queue_.is_due(now.steady)) {
    begin(now, {machines, nodes, dump});
  }
  if (can && is_new && !settings_.dry_run) {
    for (auto& change : planned(dump)) {
      changes.push_back(std::move(change));
    }
  }
  return may_act_() ? std::max(queue_.next(), can ? SteadyTime{} : now.steady + kAfterAction)
                    : kNever;
}

}  // namespace slurmlet::op
