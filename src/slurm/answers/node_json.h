#pragma once

// Nodes as Slurm prints them in JSON: the body of slurmrestd's GET /slurm/v0.0.36 … v0.0.45
// /node/NAME and /nodes, and `scontrol show node --json` (since 23.02), `sinfo --json`. The forms
// differ in names, types and in what "nothing" looks like; a form is recognised by what is there,
// not by the version it claims (Slurm's src/plugins/data_parser and, before
// 23.02, src/plugins/openapi). Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "node/facts.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// Any of those documents; `http_status` is 0 for the output of a command.
NodesAnswer parse_nodes_json(std::string_view body, int http_status);

// One element of nodes[] of a full dump; nothing when it is none, or has no node's name.
std::optional<node::SlurmNodeRecord> parse_node_json(std::string_view element);

// Of such an element what parse_node_json() reads, but for samples of load and memory: as one line,
// with the name of the node before it. Nothing when it is none.
std::optional<std::pair<std::string, std::string>> compact_node_json(std::string_view element);

// The answer of slurmrestd about `node`: kNotInSlurm when it knows none of that name, kGarbage for
// another node's record, an HTML page of a proxy, a cut-off document and the like.
QueryResult interpret_rest(int http_status, std::string_view body, std::string_view node);

}  // namespace slurmlet::slurm
