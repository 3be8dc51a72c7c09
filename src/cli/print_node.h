#pragma once

// `slurmlet print-node`: the Node that would be registered, from what this machine shows, without
// any API server; with --diff, what would change on the Node that the API server has.

#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "node/node.h"
#include "node/node_diff.h"

namespace slurmlet::cli {

// `format` is "yaml" or "json". Waits for slurmctld's answer, at most the command timeout.
Result<std::string> print_node(const config::Settings& settings, const std::string& format);

// Reads the Node with this node's credential; changes nothing. "" when nothing would change.
Result<std::string> diff_node(const config::Settings& settings);

// What node_diff() would write, for people: "+" is what the Node gets, "-" what it loses, below the
// field's name. Heartbeats, and what others own, are left out. A taint that is missing is named,
// though only an administrator can add it. "" when there is nothing. Pure.
std::string diff_text(const node::ObservedNode& live, const node::DesiredNode& wanted,
                      WallTime now);
// The same where the API server has no such Node.
std::string missing_text(const node::DesiredNode& wanted);

}  // namespace slurmlet::cli
