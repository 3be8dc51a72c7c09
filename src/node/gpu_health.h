#pragma once

// The condition GPUHealthy: whether the machine shows the cards of the GPUs that Slurm has here. It
// compares, best evidence first, the device files of cards that gres.conf lists with those that
// exist, or the number of Slurm's GPUs with that of the cards which the vendor's driver has taken.
// Slices of cards are not judged (gpu_cards.h): where they may be among Slurm's GPUs, or nothing
// says whose those are, it is Unknown. A guess never makes it False. Pure.

#include <optional>

#include "node/facts.h"
#include "node/node.h"

namespace slurmlet::node {

// Nothing on a node that has no GPUs in Slurm, or of which Slurm has reported nothing yet.
std::optional<Condition> gpu_condition(const HostFacts& facts);

// Whether this is a condition that gpu_condition() made. (Other programs name theirs alike.)
bool is_gpu_condition_of_ours(const Condition& condition);

}  // namespace slurmlet::node
