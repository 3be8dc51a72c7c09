#pragma once

// What slurm.conf and gres.conf on this machine say about the cluster and this node (slurm.conf(5),
// gres.conf(5)). Only the lines about this node are kept: a file with ten thousand NodeName lines
// costs no memory after reading. Memory is in MiB, as in the files. Functions with a path read
// files; the rest is pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/trusted_file.h"
#include "node/facts.h"

namespace slurmlet::slurm {

// Where Slurm's commands look on a machine, in this order (src/common/read_config.c): $SLURM_CONF,
// the built-in path, and the cache that slurmd of a configless cluster keeps (in its spool
// directory, with a link in /run).
struct ConfSearch {
  std::string configured;   // setting; wins over the environment
  std::string environment;  // $SLURM_CONF
  std::vector<std::string> defaults{"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                    "/run/slurm/conf/slurm.conf",
                                    "/var/spool/slurmd/conf-cache/slurm.conf"};
};

// The first that is readable. A configured or inherited path is returned even when it is not: then
// reading it says what is wrong. "" when there is none.
std::string find_slurm_conf(const ConfSearch& search);

// One node of a NodeName line, with what the DEFAULT lines before it give.
struct NodeLine {
  std::string name;
  std::string hostname;  // NodeHostname, else the name
  std::int64_t core_spec_count = 0;
  std::string cpu_spec_list;
  std::int64_t cpus = 0;  // 0 = every thread; likewise not given below
  std::int64_t boards = 1;
  std::int64_t sockets = 0;
  std::int64_t sockets_per_board = 0;
  std::int64_t cores_per_socket = 1;
  std::int64_t threads_per_core = 1;
  std::int64_t mem_spec_limit_mib = 0;
  std::vector<node::Gres> gres;
  // A CPU of this node is a core with all its threads: CPUs= is the number of cores.
  bool counts_cores() const;
  bool operator==(const NodeLine&) const = default;
};

// Names by which this machine may be known, so that its lines can be picked out.
struct ConfIdentity {
  std::string hostname;            // as uname -n has it, short or with domain
  std::vector<std::string> names;  // possible NodeNames: configured, of slurmd's -N, Kubernetes'
  TrustedUsers users = {};         // may own the file, beside our own user
  std::vector<std::string> other_hosts = {};  // by which slurmd finds NodeHostname as well
};

struct SlurmConf {
  std::string path;
  std::string cluster_name;              // in lower case, as Slurm has it
  std::vector<std::string> left_out;     // Includes that could not be read, with why
  bool jobs_are_contained = false;       // PrologFlags=Contain
  bool limits_rate = false;              // SlurmctldParameters=rl_enable
  std::vector<std::string> controllers;  // "head1": without the address of head1(10.0.0.1)
  // SlurmctldAddr: the one address that whichever controller is active answers at; "" without.
  std::string virtual_address;
  int controller_port = 6817;                              // SlurmctldPort, the first of a range
  std::string pid_file = "/var/run/slurmd.pid";            // may hold %n and %h
  std::string spool_dir = "/var/spool/slurmd";             // may hold %n and %h
  std::string slurm_user = "root";                         // SlurmUser: a name or a uid
  std::string munge_socket = "/run/munge/munge.socket.2";  // AuthInfo=socket=…
  bool uses_munge = true;                                  // AuthType
  // Of all NodeName lines, and MaxNodeCount where that is more (dynamic nodes).
  std::int64_t node_count = 0;
  // Of those, what starts with the site: neither CLOUD (a few at a time) nor FUTURE (not there
  // yet).
  std::int64_t nodes_at_once = 0;
  std::vector<NodeLine> nodes;  // those that the identity matches, in the file's order
  const NodeLine* find_node(std::string_view name) const;
};

// kNotFound, kDenied or kInvalid (a file or an Include that others may change, trusted_file.h). An
// Include that cannot be read only costs its own lines.
Result<SlurmConf> read_slurm_conf(const std::string& path, const ConfIdentity& identity);

// %n → node name, %h → short host name, %% → %.
std::string expand_pattern(std::string_view pattern, std::string_view node_name,
                           std::string_view hostname);

// "nid000001.example.org" → "nid000001"
std::string short_hostname(std::string_view hostname);

// What gres.conf beside slurm.conf says of one node's GPUs (lines of Name=gpu, and AutoDetect=).
struct GpuConf {
  // "nvidia", "amd", "intel" by AutoDetect= and the files; "" when these name none, or two.
  // /dev/dri/render* alone decides nothing: two vendors have those.
  std::string vendor = {};
  // Of each GPU that is listed, its files, expanded and in order: each file of File= is a GPU, all
  // of one MultipleFiles= together are one (a MIG slice: its card's, /dev/nvidia-caps/…).
  std::vector<std::vector<std::string>> files = {};
  std::string rejected = {};  // why the file is not used: others may change it
  bool operator==(const GpuConf&) const = default;
};

// No vendor and no files when gres.conf cannot be read.
GpuConf read_gpu_conf(const std::string& slurm_conf_path, const std::string& node_name,
                      const TrustedUsers& users = {});

// `node_name` may be "".
node::SlurmConfFacts conf_facts(const SlurmConf& conf, const std::string& node_name,
                                const GpuConf& gpus);

}  // namespace slurmlet::slurm
