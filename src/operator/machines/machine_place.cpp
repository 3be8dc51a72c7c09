#include "operator/machines/machine_place.h"

#include <algorithm>

#include "base/plain_text.h"

namespace slurmlet::op {
namespace {

bool is_ip(const std::string& address) {
  return address.find_first_not_of("0123456789.") == std::string::npos ||
         address.find(':') != std::string::npos;
}

std::vector<const SlurmNode*> entries_at(const HostIndex::Index& index, const std::string& key) {
  std::vector<const SlurmNode*> out;
  const auto [begin, end] = index.equal_range(key);
  for (auto at = begin; at != end && !key.empty(); ++at) {
    out.push_back(at->second);
  }
  return out;
}

// Slurm nodes that share name, NodeHostName or address with the Machine, and all others on their
// hosts.
std::vector<const SlurmNode*> on_host(const kube::Machine& machine, const SiteView& site) {
  const KubeNode* node = node_of(machine, site.nodes);
  std::set<const SlurmNode*> found;
  const auto add = [&found](const std::vector<const SlurmNode*>& some) {
    found.insert(some.begin(), some.end());
  };
  add(entries_at(site.hosts.by_label, first_label(node == nullptr ? machine.node : node->name)));
  for (const std::string& address : machine.addresses) {
    add(entries_at(site.hosts.by_label, is_ip(address) ? "" : first_label(address)));
    add(entries_at(site.hosts.by_address, address));
  }
  for (const SlurmNode* slurm : std::set{found}) {
    add(entries_at(site.hosts.by_host, slurm->hostname));
  }
  std::vector<const SlurmNode*> out{found.begin(), found.end()};
  std::ranges::sort(out, {}, &SlurmNode::name);
  return out;
}

// Why `place.slurm` may belong to another Node; "" = it does not.
std::string doubt_about_slurm(const MachinePlace& place, const SiteView& site) {
  // Only the record names the host, so it may be this one.
  if (const auto& misread = site.dump.misread(); !misread.empty()) {
    return "slurmctld's record of " + plain_text(*misread.begin()) + " could not be parsed";
  }
  const std::string& claimed = claimed_name(place.node);
  const SlurmNode* own = place.has_node ? site.dump.find(claimed) : nullptr;
  if (own != nullptr && std::ranges::find(place.slurm, own) == place.slurm.end()) {
    return distrust(place.node, *own, 1);
  }
  for (const SlurmNode* slurm : place.slurm) {
    const bool is_own_host = own != nullptr && slurm->hostname == own->hostname;
    const auto names = claimants(site.nodes.by_slurm(), *slurm);
    if (slurm == own && names.size() > 1) {
      return distrust(place.node, *slurm, names.size());
    }
    if (!is_own_host && !names.empty() && (!place.has_node || names.front() != place.node.name)) {
      return "Slurm node " + slurm->name + " belongs to Node " + names.front();
    }
  }
  return "";
}

std::vector<const KubeNode*> nodes_with(const std::string& provider_id, const SiteNodes& nodes) {
  std::vector<const KubeNode*> out;
  for (const auto& [name, node] : nodes.all()) {
    if (!provider_id.empty() && node.provider_id == provider_id) {
      out.push_back(&node);
    }
  }
  return out;
}

// Without a host no job can run. The Machine's name proves nothing, since its creator chooses it.
std::string about_unprovisioned(const kube::Machine& machine, const SiteView& site,
                                MachinePlace& out) {
  if (const auto same = entries_at(site.hosts.by_label, first_label(machine.name)); !same.empty()) {
    return "it has no Node yet, and its name is that of Slurm node " + same.front()->name +
           ". If that is another machine, remove the hook";
  }
  out.never_provisioned = !machine.provisioned && machine.provider_id.empty() &&
                          machine.addresses.empty() && site.nodes.find(machine.name) == nullptr;
  return "";
}

std::string doubt_about_node(const kube::Machine& machine, const MachinePlace& place,
                             const SiteNodes& nodes, std::size_t claims) {
  const KubeNode& node = place.node;
  if (machine.node.empty() && nodes_with(machine.provider_id, nodes).size() > 1) {
    return "more than one Node has its providerID";
  }
  if (claims > 1) {
    return "more than one Machine has Node " + node.name;
  }
  if (!place.has_node) {
    return "";
  }
  if (!machine.provider_id.empty() && !node.provider_id.empty() &&
      machine.provider_id != node.provider_id) {
    return "Node " + node.name + " has the providerID of another Machine";
  }
  if (!node.machine.empty() && node.machine != key_of(machine)) {
    return "Node " + node.name + " belongs to Machine " + node.machine;
  }
  return node.belongs == Belongs::kUnknown
             ? "slurmlet on Node " + node.name +
                   " has not reported its Slurm cluster; it needs slurm.conf"
             : "";
}

}  // namespace

HostIndex::HostIndex(const SlurmNodes& nodes) {
  for (const auto& [name, slurm] : nodes) {
    by_label.emplace(first_label(name), &slurm);
    by_label.emplace(first_label(slurm.hostname), &slurm);
    by_address.emplace(slurm.address, &slurm);
    by_host.emplace(slurm.hostname, &slurm);
  }
}

std::string key_of(const kube::Machine& machine) {
  return machine.namespace_name + "/" + machine.name;
}

std::string deployment_key(const kube::Machine& machine) {
  return machine.namespace_name + "/" + machine.deployment;
}

// Does not match by the Machine's name, which its creator chooses.
const KubeNode* node_of(const kube::Machine& machine, const SiteNodes& nodes) {
  if (!machine.node.empty()) {
    return nodes.find(machine.node);
  }
  const auto same = nodes_with(machine.provider_id, nodes);
  return same.size() == 1 ? same.front() : nullptr;
}

MachinePlace find_place(const kube::Machine& machine, const SiteView& site, std::size_t claims) {
  MachinePlace out;
  if (const KubeNode* node = node_of(machine, site.nodes)) {
    out.node = *node;
    out.has_node = true;
  } else {
    out.node.name = machine.node.empty() ? machine.name : machine.node;
    out.node.uid = machine.uid;
  }
  out.is_elsewhere = out.has_node && out.node.belongs == Belongs::kElsewhere;
  if (out.is_elsewhere) {
    return out;
  }
  out.slurm = on_host(machine, site);
  out.unclear = doubt_about_node(machine, out, site.nodes, claims);
  if (out.unclear.empty()) {
    out.unclear = doubt_about_slurm(out, site);
  }
  if (out.unclear.empty() && out.slurm.empty() && !out.has_node && machine.node.empty()) {
    out.unclear = about_unprovisioned(machine, site, out);
  }
  return out;
}

std::optional<MachineNames> names_of(const Machines& machines, const std::string& node) {
  std::optional<MachineNames> found;
  for (const auto& [key, machine] : machines) {
    const bool has_name = machine.name == node ||
                          std::count(machine.addresses.begin(), machine.addresses.end(), node) != 0;
    if (machine.deleted_at || (machine.node.empty() ? !has_name : machine.node != node)) {
      continue;
    }
    if (found) {
      return std::nullopt;
    }
    found = MachineNames{machine.hooked, !machine.node.empty(), machine.addresses};
    found->addresses.push_back(node);
  }
  return found;
}

std::set<std::string> deployments_elsewhere(const Machines& machines, const SiteNodes& nodes) {
  std::set<std::string> out;
  for (const auto& [key, machine] : machines) {
    const KubeNode* node = node_of(machine, nodes);
    if (node != nullptr && node->belongs == Belongs::kElsewhere) {
      out.insert(deployment_key(machine));
    }
  }
  return out;
}

std::string doubt_about(const Machines& machines, std::set<std::string> clusters) {
  for (const auto& [key, machine] : machines) {
    if (machine.hooked) {
      clusters.insert(machine.namespace_name + "/" + machine.cluster);
    }
  }
  return clusters.size() < 2
             ? ""
             : "they are of several Clusters (" + *clusters.begin() + ", " + *clusters.rbegin() +
                   "); nothing is done with any until machineCluster names one";
}

}  // namespace slurmlet::op
