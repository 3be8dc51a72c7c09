#pragma once

// Which of the slurmd on this machine is the one to follow, and with it which slurm.conf. Compares
// paths, so it looks at files; reads none.

#include <string>
#include <vector>

#include "base/trusted_file.h"
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
  std::string refusal;              // they are of several clusters, for people; "" = they are not
};

ClusterChoice choose_cluster(const std::vector<SlurmdSeen>& seen, const ClusterWish& wish);

}  // namespace slurmlet::slurm
