#include "node/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "node/gpu_cards.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

constexpr char kAllPresent[] = "AllGPUsPresent";
constexpr char kMissing[] = "GPUMissing";
constexpr char kDevicesUnspecified[] = "GPUDevicesUnspecified";
constexpr char kUnreadable[] = "GPUsUnreadable";
constexpr char kOnlySlices[] = "OnlyGPUSlices";
constexpr char kSlicesCounted[] = "GPUSlicesCounted";
constexpr std::array kReasons{kAllPresent, kMissing,    kDevicesUnspecified,
                              kUnreadable, kOnlySlices, kSlicesCounted};

constexpr std::string_view kNvidiaFile = "/dev/nvidia";
constexpr std::size_t kMaxNamed = 16;

Condition verdict(const char* status, const char* reason, std::string message) {
  return {vocabulary::kGpuHealthy, status, reason, std::move(message)};
}

// "/dev/nvidia5 is missing", "a, b are missing"
std::string named(const std::vector<std::string>& names, const char* one, const char* many) {
  std::vector<std::string> shown{
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMaxNamed))};
  if (names.size() > kMaxNamed) {
    shown.push_back(fmt::format("and {} more", names.size() - kMaxNamed));
  }
  return join(shown, ", ") + (names.size() == 1 ? one : many);
}

std::string missing_text(const std::vector<std::string>& names) {
  return named(names, " is missing", " are missing");
}

std::string driverless_text(const std::vector<std::string>& addresses) {
  return named(addresses, " has no driver", " have no driver");
}

std::string slurm_has_but(std::int64_t slurm, std::int64_t machine) {
  return fmt::format("Slurm expects {}, the machine has {}: ", counted(slurm, "GPU"), machine);
}

std::string all_present(std::int64_t slurm) {
  return slurm == 1 ? "the GPU that Slurm expects is present"
                    : fmt::format("all {} that Slurm expects are present", counted(slurm, "GPU"));
}

// The number N of "/dev/nvidiaN"; nothing for other files (/dev/nvidiactl).
std::optional<int> nvidia_minor(std::string_view file) {
  return file.starts_with(kNvidiaFile) ? parse_int<int>(file.substr(kNvidiaFile.size()))
                                       : std::nullopt;
}

// What the machine has beyond Slurm's GPUs, for people; "" if nothing.
std::string surplus(const SlurmGpus& gpus, const GpuCards& cards) {
  std::string text;
  if (const auto more = cards.whole - gpus.plain; more > 0 && gpus.slices == 0) {
    text = fmt::format("; GPUs not used by Slurm: {}", more);
  }
  if (!cards.driverless.empty()) {
    text += "; " + driverless_text(cards.driverless);
  }
  return text;
}

// A device file may outlive its device: the numbers of NVIDIA's driver decide, where it shows any.
std::vector<std::string> files_without_device(const HostFacts& facts) {
  std::set<std::string> nodes;
  for (const GpuDevice& gpu : facts.machine.gpus.value_or(std::vector<GpuDevice>{})) {
    if (gpu.vendor == "nvidia" && nvidia_minor(gpu.device_node)) {
      nodes.insert(gpu.device_node);
    }
  }
  std::vector<std::string> out = facts.machine.missing_gpu_files;
  for (const std::string& file : card_files(facts.slurm_conf)) {
    if (!nodes.empty() && nvidia_minor(file) && !nodes.contains(file) &&
        std::find(out.begin(), out.end(), file) == out.end()) {
      out.push_back(file);
    }
  }
  return out;
}

// The GPUs that gres.conf lists with the file of a card.
struct ListedGpus {
  std::int64_t cards = 0;
  std::int64_t slices = 0;   // with files of a slice, too
  std::int64_t present = 0;  // of both, those whose cards are there
  std::int64_t all() const { return cards + slices; }
};

ListedGpus listed_gpus(const SlurmConfFacts& conf, const std::vector<std::string>& missing) {
  ListedGpus out;
  const std::vector<std::string> files_of_cards = card_files(conf);
  const auto is_in = [](const std::vector<std::string>& list) {
    return [&list](const std::string& file) {
      return std::find(list.begin(), list.end(), file) != list.end();
    };
  };
  for (const auto& files : conf.gpu_files) {
    if (std::any_of(files.begin(), files.end(), is_in(files_of_cards))) {
      ++(std::any_of(files.begin(), files.end(), is_slice_file) ? out.slices : out.cards);
      out.present += std::none_of(files.begin(), files.end(), is_in(missing)) ? 1 : 0;
    }
  }
  return out;
}

Condition by_files(const HostFacts& facts, const SlurmGpus& gpus, const ListedGpus& listed,
                   const std::vector<std::string>& missing) {
  // One gres.conf for nodes of 4 and of 8 lists files that this node need not have.
  const auto total = gpus.plain + gpus.slices;
  const auto needed = listed.all() >= total ? total : gpus.plain;
  const bool are_cards = listed.slices == 0 && gpus.slices == 0;
  if (!missing.empty() && (listed.present < needed || needed == 0)) {
    return verdict("False", kMissing,
                   are_cards && gpus.plain == listed.cards
                       ? slurm_has_but(gpus.plain, listed.present) + missing_text(missing)
                       : "of the GPU device files listed in gres.conf, " + missing_text(missing));
  }
  std::string message = gpus.plain == 0 || listed.slices > 0
                            ? "all cards whose device files gres.conf lists are present"
                            : all_present(gpus.plain);
  if (!missing.empty()) {
    message += "; gres.conf lists more files, of which " + missing_text(missing);
  }
  if (const std::string& vendor = facts.slurm_conf.gpu_vendor; are_cards && !vendor.empty()) {
    message += surplus(gpus, cards_of(facts.machine, vendor));
  }
  return verdict("True", kAllPresent, message);
}

// NVIDIA's driver counts its devices from 0: a gap is one that has gone since.
std::vector<std::string> gaps(const std::vector<GpuDevice>& gpus) {
  std::set<int> minors;
  for (const GpuDevice& gpu : gpus) {
    if (const auto minor = nvidia_minor(gpu.device_node)) {
      minors.insert(*minor);
    }
  }
  std::vector<std::string> out;
  for (int minor = 0; !minors.empty() && minor < *minors.rbegin(); ++minor) {
    if (!minors.contains(minor) && out.size() < kMaxNamed) {
      out.push_back(std::string{kNvidiaFile} + std::to_string(minor));
    }
  }
  return out;
}

Condition not_comparable(const SlurmGpus& gpus) {
  if (gpus.plain == 0) {
    return verdict("Unknown", kOnlySlices,
                   "Slurm uses only GPU slices (MIG) here, which cannot be seen without the "
                   "vendor's library");
  }
  return verdict("Unknown", kDevicesUnspecified,
                 fmt::format("Slurm expects {}, which cannot be compared with the machine's: "
                             "gres.conf does not list a device file (File=) for each, and has no "
                             "AutoDetect= of NVIDIA (nvml, nvidia) or AMD (rsmi) for them",
                             counted(gpus.plain, "GPU")));
}

Condition slices_counted(std::int64_t slurm, const std::string& vendor, const GpuCards& cards) {
  return verdict(
      "Unknown", kSlicesCounted,
      fmt::format("Slurm expects {}, slices of cards among them; the machine has {}, {} divided "
                  "into slices ({}). Whether a card is missing shows only if gres.conf lists the "
                  "cards' device files (File=, MultipleFiles=)",
                  counted(slurm, "GPU"), counted(cards.driven(), "card"), cards.divided,
                  vendor == "nvidia" ? "MIG" : "current_compute_partition is not SPX"));
}

// What Slurm expects and the machine has, in cards.
std::string expects_but(const SlurmGpus& gpus, const GpuCards& cards) {
  const std::string plain = gpus.plain > 0 ? counted(gpus.plain, "GPU") : "";
  const std::string slices =
      gpus.slices > 0 ? fmt::format("MIG slices of at least 1{}", plain.empty() ? " GPU" : " more")
                      : "";
  const std::string divided =
      cards.divided > 0 ? fmt::format(" and {} divided into slices", cards.divided) : "";
  return fmt::format("Slurm expects {}{}{}, the machine has {}{}: ", plain,
                     plain.empty() || slices.empty() ? "" : " and ", slices, cards.whole, divided);
}

Condition missing_cards(const HostFacts& facts, const std::string& vendor, const SlurmGpus& gpus,
                        const GpuCards& cards, std::int64_t usable) {
  std::vector<std::string> causes;
  if (!cards.driverless.empty()) {
    causes.push_back(driverless_text(cards.driverless));
  }
  const std::vector<std::string> gone =
      vendor == "nvidia" ? gaps(*facts.machine.gpus) : std::vector<std::string>{};
  if (!gone.empty()) {
    causes.push_back(missing_text(gone));
  }
  const auto unexplained = gpus.least_cards() - usable -
                           static_cast<std::int64_t>(cards.driverless.size() + gone.size());
  if (unexplained > 0) {
    causes.push_back(fmt::format("{} not on the PCI bus",
                                 unexplained == 1 ? "1 is" : fmt::format("{} are", unexplained)));
  }
  return verdict("False", kMissing, expects_but(gpus, cards) + join(causes, "; "));
}

bool lists_slices(const SlurmConfFacts& conf) {
  return std::any_of(conf.gpu_files.begin(), conf.gpu_files.end(), [](const auto& files) {
    return std::any_of(files.begin(), files.end(), is_slice_file);
  });
}

Condition by_cards(const HostFacts& facts, const std::string& vendor, const SlurmGpus& gpus) {
  if (vendor != "nvidia" && vendor != "amd") {
    return not_comparable(gpus);
  }
  const GpuCards cards = cards_of(facts.machine, vendor);
  // All slices together take one card at least.
  const std::int64_t usable =
      cards.divided > 0 && names_its_slices(gpus, cards) ? cards.whole + 1 : cards.driven();
  if (usable >= gpus.least_cards()) {
    return gpus.plain == 0
               ? not_comparable(gpus)
               : verdict("True", kAllPresent, all_present(gpus.plain) + surplus(gpus, cards));
  }
  if (counts_slices_as_gpus(gpus, cards) || (gpus.slices == 0 && lists_slices(facts.slurm_conf))) {
    return slices_counted(gpus.plain, vendor, cards);
  }
  // Without AutoDetect the GPUs need not be these cards; one without a driver is enough.
  const auto all = usable + static_cast<std::int64_t>(cards.driverless.size());
  if (facts.slurm_conf.gpu_vendor != vendor && all < gpus.least_cards()) {
    return not_comparable(gpus);
  }
  return missing_cards(facts, vendor, gpus, cards, usable);
}

// The worst of the vendors' verdicts.
Condition by_vendors(const HostFacts& facts, const std::map<std::string, SlurmGpus>& vendors) {
  std::optional<Condition> worst;
  std::int64_t plain = 0;
  for (const auto& [vendor, gpus] : vendors) {
    plain += gpus.plain;
    Condition next = by_cards(facts, vendor, gpus);
    if (!worst || next.status == "False" || worst->status == "True") {
      worst = std::move(next);
    }
  }
  return worst->status == "True" && vendors.size() > 1
             ? verdict("True", kAllPresent, all_present(plain))
             : *std::move(worst);
}

}  // namespace

std::optional<Condition> gpu_condition(const HostFacts& facts) {
  const auto vendors =
      gpus_by_vendor(facts.slurm.record ? facts.slurm.record->gres : facts.slurm_conf.gres, facts);
  if (vendors.empty()) {
    return std::nullopt;
  }
  if (facts.machine.gpus_hang) {
    return verdict("Unknown", kUnreadable, "the GPU driver does not answer");
  }
  SlurmGpus gpus;
  for (const auto& [vendor, more] : vendors) {
    gpus.plain += more.plain;
    gpus.slices += more.slices;
  }
  const std::vector<std::string> missing = files_without_device(facts);
  const ListedGpus listed = listed_gpus(facts.slurm_conf, missing);
  // GPUs of which gres.conf lists no file are found by AutoDetect, if at all.
  const bool are_listed =
      listed.cards + std::max<std::int64_t>(0, listed.slices - gpus.slices) >= gpus.plain;
  if (listed.all() > 0 && (are_listed || listed.present < listed.all())) {
    return by_files(facts, gpus, listed, missing);
  }
  if (gpus.plain == 0 && !facts.machine.gpus) {
    return not_comparable(gpus);
  }
  if (!facts.machine.gpus) {
    return verdict("Unknown", kUnreadable, "the machine's PCI devices cannot be read");
  }
  return by_vendors(facts, vendors);
}

bool is_gpu_condition_of_ours(const Condition& condition) {
  return condition.type == vocabulary::kGpuHealthy &&
         std::any_of(kReasons.begin(), kReasons.end(),
                     [&](const char* reason) { return condition.reason == reason; });
}

}  // namespace slurmlet::node
