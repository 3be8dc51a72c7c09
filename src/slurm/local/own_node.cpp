#include "slurm/local/own_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
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

std::vector<const NodeLine*> nodes_of_host(const SlurmConf& conf, const std::string& hostname) {
  std::vector<const NodeLine*> found;
  for (const auto& node : conf.nodes) {
    if (node.hostname == hostname || node.hostname == short_hostname(hostname)) {
      found.push_back(&node);
    }
  }
  return found;
}

// A slurmd whose slurm.conf cannot be told is another cluster's if ours does not know its name.
bool is_of_cluster(const SlurmdSeen& slurmd, const SlurmConf* conf) {
  const std::string& name = slurmd.options.node_name;
  return slurmd.conf_known || name.empty() || slurmd.options.dynamic || conf == nullptr ||
         conf->find_node(name) != nullptr;
}

constexpr const char* kUntold = "a node named by slurmctld";

// What the slurmd that run here call themselves: NAME of -N, "" for those without, kUntold for one
// that has not told its name.
std::set<std::string> slurmd_names(const NameSources& sources) {
  std::set<std::string> names;
  for (const auto& slurmd : sources.slurmds) {
    if (is_of_cluster(slurmd, sources.conf)) {
      const bool untold = slurmd.is_named_by_slurmctld() && slurmd.told_name.empty();
      names.insert(untold ? kUntold : slurmd.own_name());
    }
  }
  return names;
}

NameChoice of_one_slurmd(const NameSources& sources, const std::string& name) {
  for (const auto& slurmd : sources.slurmds) {
    if (!slurmd.is_named_by_slurmctld() || !is_of_cluster(slurmd, sources.conf)) {
      continue;
    }
    if (name == kUntold) {
      return {"", "slurmd -F: slurmctld assigns the node name; slurmd has not reported it yet",
              slurmd.pid};
    }
    return {name, "scontrol show slurmd", slurmd.pid};
  }
  return {name, "option -N of the running slurmd"};
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
    names.insert(short_hostname(sources.hostname));
  }
  for (const std::string& name : {sources.node_name, short_hostname(sources.node_name)}) {
    if (names.contains(name)) {
      return {name, "of the slurmds running here, the one with the Kubernetes node's name"};
    }
  }
  return {"", fmt::format("slurmd is running here as {}; set slurm.nodeName", listed(names))};
}

}  // namespace

ClusterChoice choose_cluster(const std::vector<SlurmdSeen>& seen, const ClusterWish& wish) {
  ClusterChoice choice;
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(choice.slurmds),
               [&](const SlurmdSeen& slurmd) { return may_be_meant(slurmd, wish); });
  // One that says it is the wished node is meant, whatever those are that do not say.
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
    choice.refusal = "slurmds of several clusters are running here (" + join(origins, ", ") +
                     "): set slurm.conf";
    choice.conf.clear();
    choice.conf_server.clear();
  }
  return choice;
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
    const auto same_host = nodes_of_host(*sources.conf, sources.hostname);
    if (same_host.size() == 1) {
      const NodeLine& node = *same_host.front();
      return {node.name,
              fmt::format("{}: {} {}", sources.conf->path,
                          node.name == node.hostname ? "NodeName" : "NodeHostname", node.hostname)};
    }
    for (const std::string& name : {sources.node_name, short_hostname(sources.node_name)}) {
      if (!name.empty() && sources.conf->find_node(name) != nullptr) {
        return {name, fmt::format("{}: NodeName equal to the node's name in Kubernetes",
                                  sources.conf->path)};
      }
    }
    if (same_host.size() > 1) {
      std::set<std::string> names;
      for (const NodeLine* node : same_host) {
        names.insert(node->name);
      }
      return {"", fmt::format("{} names this host {}; set slurm.nodeName", sources.conf->path,
                              listed(names))};
    }
  }
  if (!sources.hostname.empty()) {
    return {short_hostname(sources.hostname), "host name"};
  }
  return {short_hostname(sources.node_name),
          sources.node_name.empty() ? "none found" : "the node's name in Kubernetes"};
}

}  // namespace slurmlet::slurm
