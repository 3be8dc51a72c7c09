#pragma once

// Settings of earlier releases that are gone, and what to do instead. A row stays for one release.
// Immutable; safe from any thread.

#include <string>
#include <string_view>

namespace slurmlet::config {

// "was removed in 0.2: ADVICE" for a key ("slurm.feed"), a flag ("--slurm-feed") or a value
// ("slurm.source: feed") that is gone; "" for all others.
std::string removal_of(std::string_view name);

}  // namespace slurmlet::config
