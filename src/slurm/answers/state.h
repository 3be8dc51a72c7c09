#pragma once

// Slurm's words for a node state, as scontrol and slurmrestd have them:
// "MIXED+DRAIN+NOT_RESPONDING". Pure.

#include <string>
#include <string_view>

#include "node/facts.h"

namespace slurmlet::slurm {

// One base and flags, in any order and case. What is not known is kept in upper case: as the base
// when there is no other base, else as a flag. "" gives an empty base; flags without a base stand
// beside UNKNOWN. The words of a REST list are joined by "+".
node::SlurmState parse_state(std::string_view text);

// Whether every word of it is one of Slurm's, and not other text.
bool is_state(std::string_view text);

}  // namespace slurmlet::slurm
