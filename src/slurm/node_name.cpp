#include "slurm/node_name.h"

#include <fmt/format.h>

#include <vector>

namespace slurmlet::slurm {
namespace {

std::vector<const NodeLine*> nodes_of_host(const SlurmConf& conf, const std::string& hostname) {
  std::vector<const NodeLine*> found;
  for (const auto& node : conf.nodes) {
    if (node.hostname == hostname || node.hostname == short_hostname(hostname)) {
      found.push_back(&node);
    }
  }
  return found;
}

}  // namespace

NameChoice resolve_node_name(const NameSources& sources) {
  if (!sources.configured.empty()) {
    return {sources.configured, "setting slurm.nodeName"};
  }
  if (!sources.slurmd_option.empty()) {
    return {sources.slurmd_option, "option -N of the running slurmd"};
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
      return {"", fmt::format("{}: several NodeNames have the host name {}; set slurm.nodeName",
                              sources.conf->path, short_hostname(sources.hostname))};
    }
  }
  if (!sources.hostname.empty()) {
    return {short_hostname(sources.hostname), "host name"};
  }
  return {short_hostname(sources.node_name),
          sources.node_name.empty() ? "nothing tells" : "the node's name in Kubernetes"};
}

}  // namespace slurmlet::slurm
