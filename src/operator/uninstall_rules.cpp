#include "operator/uninstall_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/plain_text.h"
#include "base/text.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;

constexpr const char* kStillCordoned = "cordoned in Kubernetes";

// Hosts whose Machine is being deleted.
struct Leaving {
  std::set<std::string> nodes, slurm;
};

std::vector<std::string> annotations_on(const KubeNode& node) {
  std::vector<std::string> out;
  if (node.record) {
    out.emplace_back(names::kRecord);
  }
  if (!node.detach.empty()) {
    out.emplace_back(names::kDetach);
  }
  if (!node.drain.empty()) {
    out.emplace_back(names::kDrain);
  }
  return out;
}

// Whether the Machine may be of another Slurm cluster.
bool is_anothers(const kube::Machine& machine, const SeenSite& seen) {
  const KubeNode* node = node_of(machine, seen.site.nodes);
  return node == nullptr ? seen.is_shared : node->belongs == Belongs::kElsewhere;
}

void add_machine(const kube::Machine& machine, const SeenSite& seen, UninstallPlan& plan,
                 Leaving& leaving) {
  const bool is_marked = !own_annotations(machine).empty();
  if (is_anothers(machine, seen)) {
    if (is_marked && node_of(machine, seen.site.nodes) == nullptr) {
      plan.kept.push_back(fmt::format(
          "Machine {} keeps {}: it has no Node, and may be another Slurm cluster's; set "
          "machineCluster",
          key_of(machine), join(own_annotations(machine), ", ")));
    }
    return;
  }
  if (machine.sleeping) {
    plan.kept.push_back(fmt::format(
        "Machine {} keeps {}: Slurm has powered its host down. Wake it (scontrol update "
        "nodename=NAME state=power_up), and uninstall again once its Node is Ready",
        key_of(machine), names::kSkipRemediation));
  }
  if (!machine.deleted_at) {
    if (is_marked) {
      plan.machines.push_back(machine);
    }
    return;
  }
  if (machine.hooked) {
    plan.blockers.push_back(fmt::format(
        "Machine {} is being deleted and waits for its jobs, which only the operator can know of: "
        "let it run until the Machine is gone. Or look that no job runs on its host, and remove "
        "the hook: kubectl annotate machine {} -n {} {}-",
        key_of(machine), machine.name, machine.namespace_name, names::kMachineHook));
  }
  const MachinePlace place = find_place(machine, seen.site, 1);
  if (place.has_node) {
    leaving.nodes.insert(place.node.name);
  }
  std::string drained;
  for (const SlurmNode* slurm : place.slurm) {
    leaving.slurm.insert(slurm->name);
    if (slurm->state.has("DRAIN") && is_own_drain(slurm->reason)) {
      drained += (drained.empty() ? "" : ",") + slurm->name;
    }
  }
  if (!drained.empty() && !machine.hooked) {
    plan.kept.push_back(fmt::format(
        "Slurm node {} stays drained: Machine {} is being deleted, and a job that starts there "
        "would be lost. Uninstall again once it is gone",
        drained, key_of(machine)));
  }
}

// "GPUHealthy: 1 of 8 GPUs missing" of the operator's Reason.
std::string without_mark(const std::string& reason) {
  const auto type = reason.find(health_type(reason));
  return reason.substr(type, reason.rfind(" [") - type);
}

// The change that takes back what is the operator's of a Slurm node; kNone: nothing is, or it
// stays.
NodeChange slurm_change(const SlurmNode& slurm, const SiteView& site, UninstallPlan& plan) {
  const bool is_drained = slurm.state.has("DRAIN");
  const bool is_ours =
      is_own_drain(slurm.reason) || (!is_drained && slurm.reason.starts_with(kUndrainedReason));
  if (is_drained && is_scale_reason(slurm.reason)) {
    return {slurm.name, DrainAction::kUndrain};
  }
  // Its jobs would run on a sick host.
  if (is_drained_for_health(slurm)) {
    return {slurm.name, DrainAction::kSetReason, without_mark(slurm.reason)};
  }
  KubeNode asked;
  asked.name = slurm.name;
  const auto claims = claimants(site.nodes.by_slurm(), slurm);
  for (const std::string& name : claims) {
    asked = *site.nodes.find(name);
    if (asked.unschedulable && is_drained) {
      return is_ours ? NodeChange{slurm.name, DrainAction::kSetReason, kStillCordoned}
                     : NodeChange{};
    }
  }
  if (claims.size() > 1) {  // whose note it is, is not known
    asked.drain.clear();
  }
  // As if the host's next Machine were there: that ends each drain of the operator.
  asked.unschedulable = false;
  asked.uid.clear();
  const DrainRuling ruling = rule_drain(asked, slurm, MachineOf::kLives);
  if (!is_drained) {
    if (!is_ours) {
      return {};
    }
    const bool others = ruling.action == DrainAction::kSetReason && ruling.text != kUndrainedReason;
    return {slurm.name, DrainAction::kSetReason, others ? ruling.text : "undrained"};
  }
  if (!ruling.waits_for.empty()) {  // slurmctld returns it by itself once slurmd responds
    return {slurm.name, DrainAction::kUndrain, "Not responding"};
  }
  if (is_final(ruling.action)) {
    return {slurm.name, ruling.action, ruling.text};
  }
  if (is_ours) {
    plan.kept.push_back(
        fmt::format("Slurm node {} stays drained: slurmctld uses the drain for a reboot. "
                    "Uninstall again after "
                    "it",
                    slurm.name));
  }
  return {};
}

// With machineCluster only its Machines and templates were listed.
bool are_of_several_clusters(const SeenSite& seen) {
  std::set<std::string> clusters;
  for (const auto& [key, machine] : seen.machines) {
    clusters.insert(machine.namespace_name + "/" + machine.cluster);
  }
  for (const MachineTemplate& one : seen.templates) {
    clusters.insert(one.namespace_name + "/" + one.cluster);
  }
  return clusters.size() > 1;
}

void add_templates(const SeenSite& seen, UninstallPlan& plan) {
  for (const MachineTemplate& one : seen.templates) {
    if (one.annotations.empty()) {
      continue;
    }
    if (seen.is_shared) {
      plan.kept.push_back(fmt::format(
          "{} {}/{} keeps the hook: it may be another Slurm cluster's; set machineCluster",
          one.kind, one.namespace_name, one.name));
    } else {
      plan.templates.push_back(one);
    }
  }
}

}  // namespace

UninstallPlan plan_uninstall(SeenSite seen) {
  seen.is_shared = seen.is_shared || are_of_several_clusters(seen);
  UninstallPlan plan;
  Leaving leaving;
  for (const auto& [key, machine] : seen.machines) {
    add_machine(machine, seen, plan, leaving);
  }
  add_templates(seen, plan);
  for (const std::string& name : seen.site.dump.misread()) {
    plan.kept.push_back("Slurm node " + name +
                        " is left as it is: slurmctld's record of it could not be parsed");
  }
  for (const auto& [name, slurm] : seen.site.dump.nodes()) {
    if (leaving.slurm.contains(name)) {
      continue;
    }
    NodeChange change = slurm_change(slurm, seen.site, plan);
    if (change.action != DrainAction::kNone) {
      plan.slurm.push_back(std::move(change));
    }
  }
  for (const auto& [name, node] : seen.site.nodes.all()) {
    auto annotations = annotations_on(node);
    // Its slurmlet must not start slurmd again; the Node goes with its Machine.
    if (!annotations.empty() && node.belongs != Belongs::kElsewhere &&
        !leaving.nodes.contains(name)) {
      plan.nodes.push_back({name, node.uid, std::move(annotations)});
    }
  }
  return plan;
}

std::string describe(const NodeChange& change, const SlurmNodes& slurm) {
  const auto node = slurm.find(change.slurm_node);
  const std::string was = node == slurm.end() ? "" : plain_text(node->second.reason);
  const char* how = change.action == DrainAction::kSetReason ? "set"
                    : change.action == DrainAction::kResume  ? "state=resume"
                    : change.action == DrainAction::kFail    ? "state=fail"
                                                             : "state=undrain";
  return fmt::format("Slurm node {} (Reason \"{}\"): {}{}", change.slurm_node, was, how,
                     change.reason.empty() ? "" : " Reason=\"" + change.reason + "\"");
}

std::string describe(const MachineTemplate& one) {
  return fmt::format("{} {}/{}: remove from its template {}", one.kind, one.namespace_name,
                     one.name, join(one.annotations, ", "));
}

std::string describe(const kube::Machine& machine) {
  return fmt::format("Machine {}: remove {}", key_of(machine),
                     join(own_annotations(machine), ", "));
}

std::string describe(const NodeAnnotations& node) {
  return fmt::format("Node {}: remove {}", node.node, join(node.annotations, ", "));
}

std::vector<std::string> own_annotations(const kube::Machine& machine) {
  std::vector<std::string> out;
  if (machine.hooked) {
    out.emplace_back(names::kMachineHook);
  }
  if (!machine.drain_policy.empty()) {
    out.emplace_back(names::kDrainPolicy);
  }
  if (machine.delete_mark == names::kDeleteMachineBy) {
    out.emplace_back(names::kDeleteMachine);
  }
  return out;
}

}  // namespace slurmlet::op
