#pragma once

// Nodes as Slurm prints them in JSON: the body of slurmrestd's GET /slurm/v0.0.36 … v0.0.45
// /node/NAME and /nodes, and `scontrol show node --json` (since 23.02), `sinfo --json`. The forms
// differ in names, types and in what "nothing" looks like; a form is recognised by what is there,
// not by the version it claims (Slurm's src/plugins/data_parser and, before
// 23.02, src/plugins/openapi). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/facts.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

struct NodesAnswer {
  // "slurmrestd", "sinfo --json", "scontrol show node --json"; "unknown" if it does not say
  std::string source = "unknown";
  std::vector<node::SlurmNodeRecord> nodes;
  std::optional<QueryFailure> failure;      // no usable answer at all; then there are no nodes
  std::string api_version;                  // "v0.0.44" as the answer says; "" if it does not
  std::string slurm_version;                // of the server that answered, "25.11.8-0pre1"; or ""
  std::string cluster;                      // "" if not told
  std::optional<std::int64_t> last_update;  // slurmctld's time of the answer, Unix seconds
  bool no_nodes = false;                    // an empty list of them, and no error
  std::vector<std::string> not_understood;  // for people: "nodes[0].state: FROBNICATED"
};

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
