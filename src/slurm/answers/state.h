#pragma once

// Slurm's words for a node state: the complete form ("MIXED+DRAIN+NOT_RESPONDING", "idle+planned";
// scontrol and sinfo's StateComplete), and sinfo's long and short words ("draining", "drng",
// "idle*", "alloc+"; sinfo(1), NODE STATE CODES). Pure.

#include <set>
#include <string>
#include <string_view>

#include "node/facts.h"

namespace slurmlet::slurm {

// Case does not matter. Words that sinfo makes of a state and a flag are taken apart ("drained" is
// IDLE+DRAIN, "draining" ALLOCATED+DRAIN: sinfo's words no longer tell ALLOCATED from MIXED). What
// is not known is kept in upper case: as the base when there is no other base, else as a flag.
// "" gives an empty base; flags without a base (of a list of words) stand beside UNKNOWN. The words
// of a REST list are joined by "+".
node::SlurmState parse_state(std::string_view text);

// What one of sinfo's long or short words can hide: "drained" is shown for IDLE+DRAIN and for
// DOWN+DRAIN, "inval" for any state, and only one sign stands behind a word (sinfo(1); the words
// are made in src/common/slurm_protocol_defs.c). Nothing for the complete form and for "drained"
// beside it.
std::set<std::string> hidden_by(std::string_view word);

// Whether every word and sign of it is one of Slurm's, so that it can be told from other text.
bool is_state(std::string_view text);

}  // namespace slurmlet::slurm
