#pragma once

// A node's record as slurmlet-operator publishes it, without samples of load and free memory: its
// lines of `scontrol -a -d -o show node`, or one line of JSON, its element of slurmrestd's nodes[]
// (node_json.h). Either ends with a line break. Pure.

#include <string_view>

#include "base/result.h"
#include "node/facts.h"

namespace slurmlet::slurm {

// Whether a record may be of a node of this name.
bool is_record_name(std::string_view name);

// kInvalid, with why in stable words ("is cut off"): also where it is more than one record.
Result<node::SlurmNodeRecord> read_record_text(std::string_view text);

}  // namespace slurmlet::slurm
