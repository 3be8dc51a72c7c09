#pragma once

// One node of a JSON answer as a record, in every form of slurm/answers/node_json.h. Internal to
// that parser. Pure.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "node/facts.h"
#include "slurm/answers/json_fields.h"

namespace slurmlet::slurm {

// More than any cluster has; what comes after is left out.
inline constexpr std::size_t kMaxRecords = 131072;

// What a JSON object of the nodes[] of slurmrestd, scontrol and sinfo of 22.05 tells. `path` is
// "nodes[0]". The name is as it came; whether figures are fresh and partitions right, which depends
// on how slurmctld was asked, is the caller's.
node::SlurmNodeRecord node_record(const nlohmann::json& object, std::string_view path,
                                  Notes& notes);

// Removes all that node_record() does not read, and samples of load and memory: a release yet to
// come may have more that changes with each answer.
void drop_unpublished(nlohmann::json& object);

// The sinfo[] of `sinfo --json` since 23.02: groups of nodes that are alike, one per partition.
// One record per node, with the partitions of all its groups. Figures of a group count for a node
// only where all nodes of the group have the same.
std::vector<node::SlurmNodeRecord> sinfo_records(const nlohmann::json& groups, Notes& notes);

// ["MIXED", "DRAIN"], or "mixed" and a list of flags. Words that no release known here has are
// kept in the state and noted.
node::SlurmState state_of(const Fields& fields, Fields::Names state, Fields::Names flags);

}  // namespace slurmlet::slurm
