#pragma once

// Slurm's generic resource strings, as scontrol prints them in Gres and GresUsed:
//
//   gpu:a100:4(S:0-1),shard:tesla:8        configured
//   gpu:a100:2(IDX:0-1),shard:tesla:3(3/4,0/4)   in use
//
// (gres.conf(5), "Gres" of slurm.conf(5); the writer is src/interfaces/gres.c of Slurm.) Pure.

#include <string_view>
#include <vector>

#include "node/facts.h"

namespace slurmlet::slurm {

// Entries in their order; entries of the same name and type are added up (one is printed per group
// of devices), and their lists of sockets, indices and shares joined by commas. "", "(null)" and
// "N/A" give none. Suffixes K, M, G, T and P are powers of 1024; the type "(null)" is no type; an
// entry without a count stands for 1. Shares of cards (shard, mps) keep their own name and are
// never added to gpu. A count beyond 64 bits is held at the largest value. A group in parentheses
// that is malformed or cut off is left out; the count before it stands.
// What is not valid UTF-8 is replaced.
std::vector<node::Gres> parse_gres(std::string_view printed);

}  // namespace slurmlet::slurm
