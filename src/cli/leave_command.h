#pragma once

// `slurmlet leave`: the way back from `slurmlet join`. Stops and disables the service, deletes the
// Node with the node's own credential where that may, and removes the credential. Slurm, its jobs
// and what a site wrote are not touched. Needs root; may be repeated.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/check/check_node.h"
#include "config/load.h"
#include "node/node.h"

namespace slurmlet::cli {

// What of a credential slurmlet itself has written, and a join: in the order in which it is
// removed.
std::vector<std::filesystem::path> own_credential_files(const config::Settings& settings,
                                                        const config::ParsedCommandLine& command);

// Whether the Node is this machine's, and so to be deleted. Pure.
struct NodeVerdict {
  std::string delete_uid;  // "" = no
  std::string why_not;     // for people
  bool is_certain = true;  // false: it may be this machine's
};
NodeVerdict node_verdict(const NodeSeen& seen, const node::DesiredNode& wanted);

// Exit code: 0 nothing is left but what the site put there; 1 it could not be done, or a Node is
// left, which the last lines name.
int run_leave(const config::Settings& settings, const config::ParsedCommandLine& command);

}  // namespace slurmlet::cli
