#pragma once

// Which of the slurmd on this machine is the one to follow, with it which slurm.conf, and which
// NodeName of Slurm this machine is. Compares paths, so it looks at files; reads none.

#include <string>
#include <vector>

#include "base/trusted_file.h"
#include "slurm/local/conf.h"
#include "slurm/local/slurmd_process.h"

namespace slurmlet::slurm {

struct ClusterWish {
  std::string conf;          // setting slurm.conf, or $SLURM_CONF; "" = none
  std::string node_name;     // setting slurm.nodeName; "" = none
  std::string default_conf;  // where a slurmd without -f and $SLURM_CONF reads; "" = nowhere
  TrustedUsers users = {};   // only files of theirs are compared by more than their paths
};

struct ClusterChoice {
  std::vector<SlurmdSeen> slurmds;  // those that may be meant
  std::string conf;                 // theirs, where none is wished for; "" = Slurm's own search
  std::string conf_server;          // of a configless cluster
  std::string problem;              // they are of several clusters, for people; "" = they are not
};

ClusterChoice choose_cluster(const std::vector<SlurmdSeen>& seen, const ClusterWish& wish);

struct NameSources {
  std::string configured;           // setting slurm.nodeName; "" = none
  std::vector<SlurmdSeen> slurmds;  // that run here, of the chosen cluster
  const SlurmConf* conf = nullptr;  // read with all of these names as identity; may be missing
  std::string hostname;             // uname -n
  std::string node_name;            // name of the Kubernetes Node
  // other_host_names(), and why they are not known; only where needs_other_hosts()
  std::vector<std::string> other_hosts = {};
  std::string other_hosts_problem = {};
};

// slurmd looks for its node by the names that the host's addresses have, since slurm.conf has the
// host name neither short nor in full.
bool needs_other_hosts(const NameSources& sources);

// What a slurmd without -N calls itself: the first node of slurm.conf whose NodeHostname is the
// short host name, else the full one, else one of the other names, in their order
// (src/slurmd/slurmd/slurmd.c). "" = not known.
std::string name_without_option(const NameSources& sources);

struct NameChoice {
  std::string name;  // "" when it is not known
  std::string why;   // for people: "slurm.conf: NodeHostname vm"; without a name: why there is none
  bool operator==(const NameChoice&) const = default;
};

// In this order: the setting, the -N of the slurmd that runs here, the host name of a `slurmd -Z`
// without -N, what another slurmd without -N calls itself, the NodeName that equals the Kubernetes
// node name, else (a dynamic node that is not there yet) the host name. Only the setting names the
// node of a `slurmd -F` without -N, which slurmctld chooses, of several slurmds that run here, of
// none where several NodeNames have this host name, and where the host's names cannot be resolved.
NameChoice resolve_node_name(const NameSources& sources);

}  // namespace slurmlet::slurm
