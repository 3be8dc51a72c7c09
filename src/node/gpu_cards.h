#pragma once

// Three different numbers: the GPUs that Slurm counts, the cards of the machine, and the
// slices of cards. One of Slurm's GPUs is a card or a slice (a MIG instance of NVIDIA's, a compute
// partition of AMD's); shard and mps are other Gres and never counted here. Only MIG slices may be
// known by their type: AutoDetect=nvml appends the profile to the model (a100_1g.5gb:
// src/plugins/gpu/nvml/gpu_nvml.c of Slurm), administrators do likewise. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "node/facts.h"

namespace slurmlet::node {

// The profile in a Gres type, named as NVIDIA's tools do: "3g.71gb" of "h200_3g.71gb",
// "1c.3g.20gb" of "a100-1c.3g.20gb", "1g.10gb+me" of "1g.10gb+me". Nothing if the type has none.
std::optional<std::string> mig_profile(const std::string& type);

// Whether the entry's type is that of MIG slices: parts of GPUs, not GPUs.
bool is_mig_slice(const Gres& gres);

// "nvidia", "amd" or "intel": whose the GPUs of an entry are, "" if undecided. gres.conf decides,
// then the machine's PCI devices, then the model in the type; on a machine with cards of NVIDIA and
// of AMD the model comes first.
std::string gpu_vendor(const Gres& gres, const HostFacts& facts);

// GPUs of one vendor in Slurm.
struct SlurmGpus {
  std::int64_t plain = 0;   // cards, or slices whose type does not say so
  std::int64_t slices = 0;  // by type
  // How many cards these take at least, if the plain ones are cards.
  std::int64_t least_cards() const { return plain + (slices > 0 ? 1 : 0); }
};

// The entries named gpu, by gpu_vendor().
std::map<std::string, SlurmGpus> gpus_by_vendor(const std::vector<Gres>& gres,
                                                const HostFacts& facts);

// The machine's cards of one vendor.
struct GpuCards {
  std::int64_t whole = 0;
  std::int64_t divided = 0;                  // into slices, or not known to be whole
  std::optional<std::int64_t> slices = 0;    // of all divided cards
  std::vector<std::string> driverless = {};  // PCI addresses; not among those above
  std::int64_t driven() const { return whole + divided; }
};

GpuCards cards_of(const MachineFacts& machine, const std::string& vendor);

// Whether Slurm's types account for all slices that the machine shows, so that its plain GPUs are
// whole cards.
bool names_its_slices(const SlurmGpus& gpus, const GpuCards& cards);

// Whether slices are among Slurm's plain GPUs: some cards are divided, and there are not enough of
// them for all to be cards.
bool counts_slices_as_gpus(const SlurmGpus& gpus, const GpuCards& cards);

// The device files of cards that gres.conf lists (File=, MultipleFiles=), in order, each once.
// /dev/nvidia-caps/* are files of slices: they come and go with those.
std::vector<std::string> card_files(const SlurmConfFacts& conf);
bool is_slice_file(const std::string& file);

}  // namespace slurmlet::node
