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

// What a JSON object of the nodes[] of slurmrestd says. `path` is "nodes[0]". The name is as it
// came.
node::SlurmNodeRecord node_record(const nlohmann::json& object, std::string_view path,
                                  Notes& notes);

// Removes all that node_record() does not read, and samples of load and memory: a release yet to
// come may have more that changes with each answer.
void drop_unpublished(nlohmann::json& object);

// ["MIXED", "DRAIN"], or "mixed" and a list of flags. Words that no release known here has are
// kept in the state and noted.
node::SlurmState state_of(const Fields& fields, Fields::Names state, Fields::Names flags);

}  // namespace slurmlet::slurm
