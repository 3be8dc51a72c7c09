#pragma once

// Finding the slurmd of this node among the processes of the machine: by its pidfile
// (SlurmdPidFile; survives a kill -9, and `slurmd --systemd` writes none), by the cgroup of
// slurmd.service, or by one look at all processes. Reads /proc and /sys/fs/cgroup only. See
// slurmd(8) for its options.

#include <string>
#include <vector>

#include "base/result.h"

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

// What slurmd's command line says (slurmd(8)), read as getopt_long(3) reads it.
struct SlurmdOptions {
  std::string node_name;     // NAME of -N
  bool dynamic = false;      // -Z
  std::string node_conf;     // of --conf: "Feature=gpu Gres=gpu:2"
  std::string conf_file;     // FILE of -f
  std::string conf_server;   // HOST[:PORT][,…] of --conf-server: configless
  bool future = false;       // -F: takes the place of a FUTURE node, which slurmctld chooses
  bool prints_only = false;  // -V, -C, -G, -h: tells something and ends
  bool operator==(const SlurmdOptions&) const = default;
};

SlurmdOptions parse_slurmd_options(const std::vector<std::string>& arguments);

// One slurmd of this machine.
struct SlurmdSeen {
  int pid = 0;
  SlurmdOptions options;
  std::string conf;         // slurm.conf: of -f, else of its $SLURM_CONF; "" = Slurm's own search
  std::string conf_server;  // of --conf-server, else of its $SLURM_CONF_SERVER
  bool conf_known = true;   // false: its environment is not ours to read, and it has no -f
  std::string told_name =
      {};  // the NodeName that it told when asked (slurmd_name.h); "" = not told
  bool operator==(const SlurmdSeen&) const = default;

  // The NodeName that it has by its own word; "" = none.
  const std::string& own_name() const {
    return options.node_name.empty() ? told_name : options.node_name;
  }
  // Only slurmctld and it know the name.
  bool is_named_by_slurmctld() const { return options.future && options.node_name.empty(); }
};

// Every living slurmd, by pid, without the children that one forks (a step's slurmstepd before its
// exec, the successor at a reconfigure), what this process started itself (`slurmd -V`), and those
// that only print something. One look at all processes. `told_name` is left empty.
Result<std::vector<SlurmdSeen>> running_slurmds(const std::string& proc_root);

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
