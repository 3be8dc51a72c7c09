#pragma once

// Slurm's client commands: how one is started, and why it failed. Slurm's messages are the same in
// all of them. Pure.
//
// Failure details are stable words without times and counters, so that they can be shown in the API
// without rewriting it at each query.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

struct ClientSettings {
  std::string conf;     // SLURM_CONF for the command; "" = not set
  std::string bin_dir;  // where scontrol is; "" = PATH
  Duration timeout = std::chrono::seconds{15};
};

// A program of Slurm and its arguments, with slurm.conf ("" = where Slurm looks by itself).
CommandSpec slurm_command(const ClientSettings& settings, std::vector<std::string> argv);

// A NodeName, not a host list: letters, digits, ".", "_", "-", and not "-" first.
bool valid_node_name(std::string_view name);

// Nothing when the output of `program` is worth parsing.
std::optional<QueryFailure> classify(const CommandOutput& output, std::string_view program);

// The cause that Slurm's messages on standard error report; nothing if none of them is known.
std::optional<QueryFailure> known_failure(std::string_view err);

// Why the command could not even be started.
QueryFailure classify_start(const Error& error);

}  // namespace slurmlet::slurm
