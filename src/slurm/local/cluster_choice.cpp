#include "slurm/local/cluster_choice.h"

#include <algorithm>
#include <functional>

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

}  // namespace slurmlet::slurm
