#include "slurm/local/own_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

// Where its configuration comes from, for comparing and for people.
std::string origin(const SlurmdSeen& slurmd, const ClusterWish& wish) {
  if (!slurmd.conf.empty()) {
    return slurmd.conf;
  }
  return slurmd.conf_server.empty() ? wish.default_conf : slurmd.conf_server;
}

bool may_be_meant(const SlurmdSeen& slurmd, const ClusterWish& wish) {
  const std::string& name = slurmd.options.node_name;
  if (!wish.node_name.empty() && !name.empty() && name != wish.node_name) {
    return false;
  }
  return wish.conf.empty() || !slurmd.conf_known ||
         same_trusted_file(origin(slurmd, wish), wish.conf, wish.users);
}

std::vector<const NodeLine*> nodes_of(const SlurmConf& conf, const std::string& host) {
  std::vector<const NodeLine*> found;
  for (const auto& node : conf.nodes) {
    if (node.hostname == host) {
      found.push_back(&node);
    }
  }
  return found;
}

// Those of the first of the names that has any.
std::vector<const NodeLine*> nodes_of_host(const NameSources& sources) {
  std::vector<std::string> hosts{short_hostname(sources.hostname), sources.hostname};
  hosts.insert(hosts.end(), sources.other_hosts.begin(), sources.other_hosts.end());
  for (const auto& host : hosts) {
    if (auto found = nodes_of(*sources.conf, host); !found.empty()) {
      return found;
    }
  }
  return {};
}

// Without -N, and not given a name by slurmctld.
bool looks_in_slurm_conf(const SlurmdSeen& slurmd) {
  return slurmd.options.node_name.empty() && !slurmd.options.future && !slurmd.options.dynamic;
}

// A slurmd whose slurm.conf is not known is another cluster's if ours does not know its name.
bool is_of_cluster(const SlurmdSeen& slurmd, const SlurmConf* conf) {
  const std::string& name = slurmd.options.node_name;
  return slurmd.conf_known || name.empty() || slurmd.options.dynamic || conf == nullptr ||
         conf->find_node(name) != nullptr;
}

constexpr const char* kByFuture = "a node named by slurmctld";

// What the slurmd that run here call themselves: NAME of -N, the host name with -Z, "" for those
// that look in slurm.conf, kByFuture for one whose name slurmctld chooses.
std::set<std::string> slurmd_names(const NameSources& sources) {
  std::set<std::string> names;
  for (const auto& slurmd : sources.slurmds) {
    const SlurmdOptions& options = slurmd.options;
    if (is_of_cluster(slurmd, sources.conf)) {
      names.insert(!options.node_name.empty() ? options.node_name
                   : options.future           ? kByFuture
                   : options.dynamic          ? sources.hostname
                                              : "");
    }
  }
  return names;
}

NameChoice of_one_slurmd(const NameSources& sources, const std::string& name) {
  if (name == kByFuture) {
    return {"", "slurmd -F: slurmctld assigns the node name; start it with -N NAME"};
  }
  const bool by_option =
      std::any_of(sources.slurmds.begin(), sources.slurmds.end(),
                  [](const SlurmdSeen& slurmd) { return !slurmd.options.node_name.empty(); });
  return {name,
          by_option ? "option -N of the running slurmd" : "host name of the running slurmd -Z"};
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t left = names.size();
  for (const auto& name : names) {
    text += name;
    --left;
    text += left > 1 ? ", " : left == 1 ? " and " : "";
  }
  return text;
}

NameChoice of_several_slurmd(const NameSources& sources, std::set<std::string> names) {
  if (names.erase("") > 0) {
    const std::string own = name_without_option(sources);
    names.insert(own.empty() ? short_hostname(sources.hostname) : own);
  }
  return {"", fmt::format("slurmd is running here as {}; set slurm.nodeName", listed(names))};
}

NameChoice by_node_line(const SlurmConf& conf, const NodeLine& node) {
  return {node.name,
          fmt::format("{}: {} {}", conf.path,
                      node.name == node.hostname ? "NodeName" : "NodeHostname", node.hostname)};
}

NameChoice not_resolved(const NameSources& sources) {
  return {"", fmt::format("{} has no node with NodeHostname {}, and the host's other names are not "
                          "known ({}); set slurm.nodeName",
                          sources.conf->path, sources.hostname, sources.other_hosts_problem)};
}

NameChoice several_nodes(const SlurmConf& conf, const std::vector<const NodeLine*>& nodes) {
  std::set<std::string> names;
  for (const NodeLine* node : nodes) {
    names.insert(node->name);
  }
  return {"", fmt::format("{} names this host {}; set slurm.nodeName", conf.path, listed(names))};
}

// `runs`: a slurmd that has taken the first.
std::optional<NameChoice> by_slurm_conf(const NameSources& sources, bool runs) {
  const SlurmConf& conf = *sources.conf;
  const auto nodes = nodes_of_host(sources);
  if (nodes.size() == 1 || (runs && !nodes.empty())) {
    return by_node_line(conf, *nodes.front());
  }
  if (nodes.size() > 1) {
    return several_nodes(conf, nodes);
  }
  for (const std::string& name : {sources.node_name, short_hostname(sources.node_name)}) {
    if (!runs && !name.empty() && conf.find_node(name) != nullptr) {
      return NameChoice{
          name, fmt::format("{}: NodeName equal to the node's name in Kubernetes", conf.path)};
    }
  }
  return sources.other_hosts_problem.empty() ? std::nullopt : std::optional{not_resolved(sources)};
}

}  // namespace

ClusterChoice choose_cluster(const std::vector<SlurmdSeen>& seen, const ClusterWish& wish) {
  ClusterChoice choice;
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(choice.slurmds),
               [&](const SlurmdSeen& slurmd) { return may_be_meant(slurmd, wish); });
  // If any has the wanted name by -N, only those count.
  const auto says_so = [&](const SlurmdSeen& slurmd) {
    return !wish.node_name.empty() && slurmd.options.node_name == wish.node_name;
  };
  if (std::any_of(choice.slurmds.begin(), choice.slurmds.end(), says_so)) {
    std::erase_if(choice.slurmds, std::not_fn(says_so));
  }
  if (!wish.conf.empty()) {
    return choice;
  }
  std::vector<std::string> origins;
  for (const auto& slurmd : choice.slurmds) {
    const std::string from = origin(slurmd, wish);
    if (slurmd.conf_known && std::none_of(origins.begin(), origins.end(), [&](const auto& other) {
          return same_trusted_file(other, from, wish.users);
        })) {
      origins.push_back(from);
      choice.conf = slurmd.conf;
      choice.conf_server = slurmd.conf_server;
    }
  }
  if (origins.size() > 1) {
    std::sort(origins.begin(), origins.end());
    choice.problem = "slurmds of several clusters are running here (" + join(origins, ", ") +
                     "): set slurm.conf";
    choice.conf.clear();
    choice.conf_server.clear();
  }
  return choice;
}

bool needs_other_hosts(const NameSources& sources) {
  return sources.configured.empty() && sources.conf != nullptr &&
         std::all_of(sources.slurmds.begin(), sources.slurmds.end(), looks_in_slurm_conf) &&
         nodes_of_host(sources).empty();
}

std::string name_without_option(const NameSources& sources) {
  const auto nodes =
      sources.conf != nullptr ? nodes_of_host(sources) : std::vector<const NodeLine*>{};
  return nodes.empty() ? "" : nodes.front()->name;
}

NameChoice resolve_node_name(const NameSources& sources) {
  if (!sources.configured.empty()) {
    return {sources.configured, "setting slurm.nodeName"};
  }
  const auto running = slurmd_names(sources);
  if (running.size() > 1) {
    return of_several_slurmd(sources, running);
  }
  if (running.size() == 1 && !running.begin()->empty()) {
    return of_one_slurmd(sources, *running.begin());
  }
  if (sources.conf != nullptr) {
    if (auto choice = by_slurm_conf(sources, !running.empty())) {
      return *std::move(choice);
    }
  }
  if (!sources.hostname.empty()) {
    // Only a dynamic node is missing in slurm.conf.
    return {sources.conf != nullptr ? sources.hostname : short_hostname(sources.hostname),
            "host name"};
  }
  return {short_hostname(sources.node_name),
          sources.node_name.empty() ? "none found" : "the node's name in Kubernetes"};
}

}  // namespace slurmlet::slurm
