#pragma once

// Capacity and allocatable. Capacity is what the hardware has, allocatable what Slurm may use of
// it; both maps always hold pods "0". A fact that is missing leaves its key out. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "node/facts.h"
#include "node/policy.h"

namespace slurmlet::node {

struct Resources {
  std::map<std::string, std::string> capacity;
  std::map<std::string, std::string> allocatable;
  std::vector<std::string> gpus;  // names of the GPU resources above, sorted
  bool operator==(const Resources&) const = default;
};

Resources resources(const HostFacts& facts, const NodePolicy& policy);

// The Kubernetes resource of a Gres entry named gpu, by configuration, else as the vendor's device
// plugin names it: nvidia.com/gpu for cards, nvidia.com/mig-3g.71gb for MIG slices whose type has
// the profile (h200_3g.71gb; a "+" of it is a "."), as in the plugin's strategy "mixed";
// amd.com/gpu for cards and partitions alike, as in AMD's default "single". slurmlet.io/gpu where
// the vendor is not known, or where slices are among NVIDIA GPUs whose types do not say which.
std::string gpu_resource(const Gres& gres, const HostFacts& facts, const NodePolicy& policy);

// MiB, as Slurm counts memory, in bytes; at most what fits.
std::int64_t bytes_of_mib(std::int64_t mib);

// A Kubernetes quantity of bytes in its canonical form, rounded down to KiB: "21694Mi".
std::string binary_quantity(std::int64_t bytes);

}  // namespace slurmlet::node
