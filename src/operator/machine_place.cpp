#include "operator/machine_place.h"

#include <algorithm>

namespace slurmlet::op {
namespace {

bool is_ip(const std::string& address) {
  return address.find_first_not_of("0123456789.") == std::string::npos ||
         address.find(':') != std::string::npos;
}

// Nothing runs there, and nobody speaks for it.
bool is_nobodys(const SlurmNode& slurm, const SiteView& site) {
  return is_dead(slurm.state) && claimants(site.by_slurm, slurm).empty();
}

// Of a Slurm node: a name of its host, or its NodeAddr.
bool has_address(const kube::Machine& machine, const SlurmNode& slurm) {
  return std::any_of(machine.addresses.begin(), machine.addresses.end(),
                     [&](const std::string& address) {
                       return (!is_ip(address) && fits(address, slurm)) ||
                              (!address.empty() && address == slurm.address);
                     });
}

// The node of Slurm that its daemon, or its own name, says; else what seems to be it.
void find_by_name(const kube::Machine& machine, const SiteView& site, MachinePlace& out) {
  const SlurmNodes& nodes = site.dump.nodes();
  if (const auto found = nodes.find(claimed_name(out.node)); found != nodes.end()) {
    out.dumped = &found->second;
    return;
  }
  const bool is_named = out.has_node || !machine.node.empty();
  for (const auto& [name, slurm] : nodes) {
    const bool by_name = fits(out.node.name, slurm);
    if (by_name && is_named && out.node.slurm_node.empty()) {  // its daemon has not said
      out.unclear =
          out.dumped == nullptr ? out.unclear : "Slurm has two nodes on host " + out.node.name;
      out.dumped = &slurm;
    } else if (!by_name && !has_address(machine, slurm)) {
      continue;
    } else if (!is_named && is_nobodys(slurm, site)) {
      out.node.slurm_node = name;  // the Machine never joined: squeue is asked nevertheless
    } else {
      out.unclear = "Slurm has no node " + claimed_name(out.node) + ", but " + name +
                    " has a name or an address of this Machine";
    }
  }
}

void find_slurm_node(const kube::Machine& machine, const SiteView& site, MachinePlace& out) {
  if (site.dump.misread().contains(claimed_name(out.node))) {
    out.unclear = "slurmctld's record of " + claimed_name(out.node) + " could not be parsed";
  }
  find_by_name(machine, site, out);
  if (out.dumped == nullptr) {
    if (out.unclear.empty() && !out.has_node && !machine.node.empty()) {
      out.unclear = "Node " + machine.node +
                    " is gone, and Slurm has no node of that name, so its Slurm node is unknown. "
                    "If it is no longer in Slurm, remove the hook";
    }
    return;
  }
  if (!out.has_node && machine.node.empty()) {
    if (is_nobodys(*out.dumped, site)) {
      out.node.slurm_node = out.dumped->name;
      out.dumped = nullptr;
      return;
    }
    out.unclear = "it has no Node yet, and its name is that of Slurm node " + out.dumped->name +
                  ". If that is another machine, remove the hook";
    return;
  }
  out.now_known = site.dump.find(out.dumped->name);
  const auto names = claimants(site.by_slurm, *out.dumped);
  const bool is_own = std::find(names.begin(), names.end(), out.node.name) != names.end();
  if (!names.empty() && !is_own) {
    out.unclear = "Slurm node " + out.dumped->name + " belongs to Node " + names.front();
  } else if (out.unclear.empty()) {
    out.unclear = distrust(out.node, *out.dumped, names.size());
  }
}

std::vector<const KubeNode*> nodes_with(const std::string& provider_id, const SiteView& site) {
  std::vector<const KubeNode*> out;
  for (const auto& [name, node] : site.nodes) {
    if (!provider_id.empty() && node.provider_id == provider_id) {
      out.push_back(&node);
    }
  }
  return out;
}

}  // namespace

std::string key_of(const kube::Machine& machine) {
  return machine.namespace_name + "/" + machine.name;
}

// Never by the Machine's own name: whoever may make Machines chooses that.
const KubeNode* node_of(const kube::Machine& machine, const SiteView& site) {
  if (!machine.node.empty()) {
    const auto found = site.nodes.find(machine.node);
    return found == site.nodes.end() ? nullptr : &found->second;
  }
  const auto same = nodes_with(machine.provider_id, site);
  return same.size() == 1 ? same.front() : nullptr;
}

MachinePlace find_place(const kube::Machine& machine, const SiteView& site, std::size_t claims) {
  MachinePlace out;
  if (const KubeNode* node = node_of(machine, site)) {
    out.node = *node;
    out.has_node = true;
  } else {
    out.node.name = machine.node.empty() ? machine.name : machine.node;
    out.node.uid = machine.uid;
  }
  if (machine.node.empty() && nodes_with(machine.provider_id, site).size() > 1) {
    out.unclear = "more than one Node has its providerID";
  } else if (claims > 1) {
    out.unclear = "more than one Machine has Node " + out.node.name;
  } else if (out.has_node && !machine.provider_id.empty() && !out.node.provider_id.empty() &&
             machine.provider_id != out.node.provider_id) {
    out.unclear = "Node " + out.node.name + " has the providerID of another Machine";
  }
  find_slurm_node(machine, site, out);
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

std::string doubt_about(const Machines& machines) {
  std::set<std::string> clusters;
  for (const auto& [key, machine] : machines) {
    if (machine.hooked) {
      clusters.insert(machine.namespace_name + "/" + machine.cluster);
    }
  }
  return clusters.size() < 2
             ? ""
             : "they are of several Clusters (" + *clusters.begin() + ", " + *clusters.rbegin() +
                   "); none is released until machineCluster names one";
}

}  // namespace slurmlet::op
