#pragma once

#include <string>

namespace slurmlet::fakes {

// A kubeconfig whose cluster and user hold what is given, one YAML flow map each.
inline std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

}  // namespace slurmlet::fakes
