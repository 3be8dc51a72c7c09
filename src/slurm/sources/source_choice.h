#pragma once

// Whom to ask about this node (slurm.source). A fixed choice is that choice; auto takes the record
// of slurmlet-operator, then what was configured, then what is there, and keeps the rest to fall
// back on (auto_source.h).

#include <string>
#include <vector>

#include "node/policy.h"

namespace slurmlet::slurm {

struct SourceOption {
  node::SlurmSource kind = node::SlurmSource::kCli;  // not kAuto
  std::string where;  // path of sinfo ("" if there is none), URL of slurmrestd
  std::string why;    // "slurm.restURL is set"
  bool operator==(const SourceOption&) const = default;
};

struct SourceFacts {
  node::SlurmSource source = node::SlurmSource::kAuto;  // what slurm.source chooses
  std::string rest_url;                                 // "" = not configured
  std::string sinfo;                                    // its path, "" = not on this machine
  std::vector<std::string> sockets;  // of slurmrestd's usual ones, those that exist
};

// In order of preference, never empty. Pure.
std::vector<SourceOption> choose_sources(const SourceFacts& facts);

// "asks slurmctld through sinfo (/usr/bin/sinfo): no slurmrestd is configured". Pure.
std::string describe(const SourceOption& option);

// Where slurmrestd listens if nobody changed it: the units of Debian's package and of upstream.
const std::vector<std::string>& usual_rest_sockets();
// Those of `paths` that are sockets.
std::vector<std::string> existing_sockets(const std::vector<std::string>& paths);

// The path of `program` in `bin_dir`, or where that is "" in the directories of $PATH; "" if it is
// not there or is not executable.
std::string find_program(const std::string& program, const std::string& bin_dir);

}  // namespace slurmlet::slurm
