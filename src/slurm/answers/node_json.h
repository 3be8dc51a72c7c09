#pragma once

// Nodes as slurmrestd prints them: the body of GET /slurm/v0.0.36 … v0.0.45 /nodes. The forms
// differ in names, types and in how they write "nothing"; a form is recognised by what is there,
// not by the version it claims (Slurm's src/plugins/data_parser and, before 23.02,
// src/plugins/openapi). Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "node/facts.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// Any of those documents, or what a proxy says in their place.
NodesAnswer parse_nodes_json(std::string_view body, int http_status);

// One element of nodes[]; nothing when it is none, or has no node's name.
std::optional<node::SlurmNodeRecord> parse_node_json(std::string_view element);

// Of such an element what parse_node_json() reads, but for samples of load and memory: as one line,
// with the name of the node before it. Nothing when it is none.
std::optional<std::pair<std::string, std::string>> compact_node_json(std::string_view element);

}  // namespace slurmlet::slurm
