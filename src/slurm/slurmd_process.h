#pragma once

// Finding the slurmd of this node among the processes of the machine: by its pidfile
// (SlurmdPidFile; survives a kill -9, and `slurmd --systemd` writes none), by the cgroup of
// slurmd.service, or by one look at all processes. Reads /proc and /sys/fs/cgroup only. See
// slurmd(8) for its options.

#include <string>
#include <vector>

namespace slurmlet::slurm {

struct SlurmdIdentity {
  std::string node_name;  // expected NAME of -N; "" = any
  std::string conf;       // slurm.conf of this node; "" = any
};

struct SlurmdPlaces {
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string pid_file;  // "" = none known
  std::string unit = "slurmd.service";
};

// NAME of -N among slurmd's arguments, "" without.
std::string slurmd_node_option(const std::vector<std::string>& arguments);
// FILE of -f, "" without.
std::string slurmd_conf_option(const std::vector<std::string>& arguments);

// Whether `pid` is a living slurmd that does not say of itself that it is another node's: its
// command line may name a node (-N) or a slurm.conf (-f, or $SLURM_CONF in its environment).
// The process of our own pidfile is only asked for its node.
bool is_our_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity, int pid);

struct FoundSlurmd {
  int pid = 0;         // 0 = not found
  int hidden_pid = 0;  // of the pidfile, when /proc does not show it to us
  std::string error;   // why the search could not be made
  bool operator==(const FoundSlurmd&) const = default;
};

FoundSlurmd find_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity);

}  // namespace slurmlet::slurm
