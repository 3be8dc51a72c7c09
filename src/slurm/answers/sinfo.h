#pragma once

// One question to slurmctld: the `sinfo` command for exactly one node, what it printed, and why it
// failed.
//
// `sinfo -N -n NODE` with one plain name is the cheap form: slurmctld answers from a read lock with
// one node and the partitions, where `scontrol show node` downloads all nodes of the cluster. Each
// `Field:|` of -O prints the field untruncated with "|" behind it (sinfo(1), --Format);
// StateComplete exists since Slurm 21.08, Reservation since 23.02: before, its column is empty and
// standard error says so. One row per partition is printed; Comment and Reason stand last, with a
// unit separator (0x1f) between them, because they may hold anything: "|", line breaks, quotes.
// --local keeps a federation's other clusters out. How much is allocated is stale in such an
// answer (slurmctld only recomputes it for a full dump): the record has it, but not as fresh.
//
// Pure. Errors and failure details are stable words without times and
// counters, so that they can be shown in the API without rewriting it at each question.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "node/facts.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

struct SinfoSettings {
  std::string conf;     // SLURM_CONF for the command; "" = not set
  std::string bin_dir;  // where sinfo is; "" = PATH
  Duration timeout = std::chrono::seconds{15};
  // sinfo looks up the name of the user who gave the reason, and hangs with a directory service.
  // Without it the user is not in the answer: another column stands in the place of User.
  bool resolve_user = true;
};

// A program of Slurm and its arguments, with slurm.conf ("" = where Slurm looks by itself).
CommandSpec slurm_command(const SinfoSettings& settings, std::vector<std::string> argv);

// A name that can stand behind -n: letters, digits, ".", "_", "-", not "-" first, no host list.
bool valid_node_name(std::string_view name);

// `node` must be a valid_node_name(): a host list would make sinfo download the whole cluster.
CommandSpec sinfo_query(const SinfoSettings& settings, const std::string& node);

// The record of `node` from the output of sinfo_query(). kNotFound when nothing was printed
// (unknown to Slurm, in no partition, or FUTURE); kInvalid for everything else that is not
// an answer for this node, such as a cut-off row or another node.
Result<node::SlurmNodeRecord> parse_sinfo(std::string_view text, std::string_view node);

// Nothing when the output of `program` is worth parsing: Slurm's messages are the same in all its
// commands.
std::optional<QueryFailure> classify(const CommandOutput& output,
                                     std::string_view program = "sinfo");

// The cause that Slurm's messages on standard error report; nothing if none of them is known.
std::optional<QueryFailure> known_failure(std::string_view err);

// Why the command could not even be started.
QueryFailure classify_start(const Error& error);

// classify() and parse_sinfo() in one.
QueryResult interpret(const CommandOutput& output, std::string_view node);

}  // namespace slurmlet::slurm
