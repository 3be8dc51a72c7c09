#pragma once

// What Slurm itself adds to a state, for the messages of conditions. Pure.

#include <string>

#include "node/facts.h"

namespace slurmlet::node {

// ' by root since 2026-11-20T14:02:11Z: "bad dimm"', as far as known; of the reason at most
// 512 bytes. Slurm keeps the reason of a state after it is over, so use it only with a state that
// the reason explains.
std::string attribution(const SlurmNodeRecord& record);

// "RESUME" or "DOWN" (scontrol reboot nextstate=), "" if Slurm names no state after a reboot.
// Releases differ: "RESUME", "UNKNOWN+UNDRAIN+RESUME", "INVALID" for none.
std::string next_state(const SlurmNodeRecord& record);

}  // namespace slurmlet::node
