#pragma once

// Which NodeName of Slurm this machine is. Pure.

#include <string>

#include "slurm/conf.h"

namespace slurmlet::slurm {

struct NameSources {
  std::string configured;           // setting slurm.nodeName; "" = none
  std::string slurmd_option;        // NAME of `slurmd -N NAME` as it runs here; "" = none
  const SlurmConf* conf = nullptr;  // read with all of these names as identity; may be missing
  std::string hostname;             // uname -n
  std::string node_name;            // name of the Kubernetes Node
};

struct NameChoice {
  std::string name;  // "" when nothing tells
  std::string why;   // for people: "slurm.conf: NodeHostname vm"
  bool operator==(const NameChoice&) const = default;
};

// In this order: the setting, slurmd's -N, the only NodeName of slurm.conf with this host name, the
// NodeName that equals the Kubernetes node name, else (a dynamic node) the short host name, which
// is what slurmd calls itself.
NameChoice resolve_node_name(const NameSources& sources);

}  // namespace slurmlet::slurm
