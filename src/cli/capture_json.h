#pragma once

// The parts of the document of `slurmlet parse-slurm` (docs/parse-slurm.md). What the capture does
// not tell is left out. Pure.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "node/facts.h"
#include "node/node.h"
#include "slurm/answers/capture.h"

namespace slurmlet::cli {

using Document = nlohmann::ordered_json;

// The facts that the whole capture tells: who answered, failure, slurmd.
void add_capture_facts(const slurm::Capture& capture, Document& facts);
void add_record_facts(const node::SlurmNodeRecord& record, Document& facts);
Document conditions_json(const std::vector<node::Condition>& conditions);

}  // namespace slurmlet::cli
