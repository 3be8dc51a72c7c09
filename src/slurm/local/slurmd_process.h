#pragma once

// Finding the slurmd of this node among the processes of the machine. Anybody may name a process
// slurmd, so one counts only if all its uids and its group are root's or SlurmUser's, and
// - it is in the cgroup of its service (slurmd.service, slurmd@NAME.service, slurmd-NAME.service),
//   and not in one of a job, a user or a container; or
// - a pidfile that nobody else may write names it (SlurmdPidFile; survives a kill -9, and
//   `slurmd --systemd` writes none).
// Of a setuid program, one of the uids or the group is its caller's; root of another user namespace
// does not show as root. Reads /proc and pidfiles only. See slurmd(8) for its options.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/trusted_file.h"

namespace slurmlet::slurm {

struct SlurmdIdentity {
  std::string node_name;          // expected NAME of -N; "" = any
  std::string conf;               // slurm.conf of this node; "" = any
  std::string unnamed = {};       // the NodeName that a slurmd without -N takes; "" = not known
  std::string default_conf = {};  // what one without -f and $SLURM_CONF reads; "" = not known
  bool operator==(const SlurmdIdentity&) const = default;
};

struct SlurmdPlaces {
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string pid_file;  // "" = none known
  std::string unit = "slurmd.service";
  // SlurmdPidFile as slurm.conf has it, with %n and %h: of whichever node; "" = none known.
  std::string pid_pattern = {};
  TrustedUsers users = {};  // of slurmd, and who writes its pidfile
  bool operator==(const SlurmdPlaces&) const = default;
};

// What slurmd's command line says (slurmd(8)), read as getopt_long(3) reads it.
struct SlurmdOptions {
  std::string node_name;     // NAME of -N
  bool dynamic = false;      // -Z
  std::string conf_file;     // FILE of -f
  std::string conf_server;   // HOST[:PORT][,…] of --conf-server: configless
  bool future = false;       // -F: takes the place of a FUTURE node, which slurmctld chooses
  bool prints_only = false;  // -V, -C, -G, -h: prints and ends
  bool operator==(const SlurmdOptions&) const = default;
};

SlurmdOptions parse_slurmd_options(std::vector<std::string> arguments);

// One slurmd of this machine.
struct SlurmdSeen {
  int pid = 0;
  SlurmdOptions options;
  std::string conf;         // slurm.conf: of -f, else of its $SLURM_CONF; "" = Slurm's own search
  std::string conf_server;  // of --conf-server, else of its $SLURM_CONF_SERVER
  bool conf_known = true;   // false: its environment is not ours to read, and it has no -f
  bool in_unit = false;     // in the cgroup of its service
  bool operator==(const SlurmdSeen&) const = default;
};

// Every living slurmd that runs as one of `users`, by pid, whether or not a pidfile names it, which
// is for who knows its slurm.conf to say. Without the children that one forks (a step's slurmstepd
// before its exec, the successor at a reconfigure), what this process started itself (`slurmd -V`),
// and those that only print something. Reads all processes once.
Result<std::vector<SlurmdSeen>> running_slurmds(const std::string& proc_root,
                                                const TrustedUsers& users = {});

// Whether a pidfile that only `users` may write names the process. `pattern` may hold %n and %h.
bool named_by_pid_file(const std::string& pattern, int pid, const TrustedUsers& users);

// Whether `pid` is a living slurmd of one of the users that is not another node's, by -N or by what
// one without -N takes, nor another cluster's, by its slurm.conf (-f, $SLURM_CONF, else the
// default). What is not known (its environment, a configless slurm.conf) does not speak against
// it.
bool is_our_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity, int pid);

struct FoundSlurmd {
  int pid = 0;                   // 0 = not found
  int hidden_pid = 0;            // of the pidfile, when /proc does not show it to us
  std::string error;             // why the search could not be made
  std::string passed_over = {};  // about a slurmd of root's that may be any
  bool operator==(const FoundSlurmd&) const = default;
};

FoundSlurmd find_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity);

}  // namespace slurmlet::slurm
