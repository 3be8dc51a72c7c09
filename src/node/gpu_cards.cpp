#include "node/gpu_cards.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/text.h"

namespace slurmlet::node {
namespace {

// Model words that sites write in the type of a GPU Gres ("a100", "tesla_v100", "nvidia_h200-nvl").
constexpr std::string_view kNvidiaWords[] = {
    "nvidia", "tesla", "geforce", "quadro", "titan", "rtx",    "gtx",   "k20",  "k40",
    "k80",    "p4",    "p40",     "p100",   "v100",  "t4",     "a2",    "a10",  "a16",
    "a30",    "a40",   "a100",    "a800",   "a4000", "a5000",  "a6000", "l4",   "l40",
    "l40s",   "h20",   "h100",    "h200",   "h800",  "gh200",  "b100",  "b200", "b300",
    "gb200",  "gb300", "2080ti",  "3090",   "4090",  "1080ti", "1080"};
constexpr std::string_view kAmdWords[] = {"amd", "instinct", "radeon"};
constexpr std::string_view kIntelWords[] = {"intel", "pvc", "max1100", "max1550", "flex170"};

bool is_word_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "mi300x", "mi250"
bool is_instinct(std::string_view word) {
  return word.starts_with("mi") && word.size() > 2 && word[2] >= '0' && word[2] <= '9';
}

std::string vendor_of_model(const std::string& type) {
  if (mig_profile(type)) {
    return "nvidia";
  }
  std::string words = to_lower(type);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == '-' || c == '.' || c == ' '; }, '_');
  for (const auto word : split(words, '_')) {
    if (is_word_of(word, kNvidiaWords)) {
      return "nvidia";
    }
    if (is_word_of(word, kAmdWords) || is_instinct(word)) {
      return "amd";
    }
    if (is_word_of(word, kIntelWords)) {
      return "intel";
    }
  }
  return "";
}

bool has_pci_vendor(const MachineFacts& machine, const char* vendor) {
  const auto found = machine.gpus_by_pci_vendor.find(vendor);
  return found != machine.gpus_by_pci_vendor.end() && found->second > 0;
}

// Takes digits and `unit` from the front of `text`: "3g." of "3g.20gb".
bool take_number(std::string_view& text, std::string_view unit) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || !text.substr(digits).starts_with(unit)) {
    return false;
  }
  text.remove_prefix(digits + unit.size());
  return true;
}

// "3g.20gb", "1c.3g.20gb" (some of an instance's compute slices), "1g.10gb+me" (attributes).
bool is_mig_profile(std::string_view text) {
  take_number(text, "c.");
  if (!take_number(text, "g.") || !take_number(text, "gb")) {
    return false;
  }
  return text.empty() ||
         (text.size() > 1 && std::string_view{"+.-"}.find(text.front()) != std::string_view::npos &&
          all_alnum(text.substr(1), ".") && text.back() != '.');
}

}  // namespace

std::optional<std::string> mig_profile(const std::string& type) {
  const std::string text = to_lower(type);
  for (std::size_t start = 0; start < text.size();) {
    if (is_mig_profile(std::string_view{text}.substr(start))) {
      return text.substr(start);
    }
    const auto end_of_word = text.find_first_of("_-", start);
    start = end_of_word == std::string::npos ? text.size() : end_of_word + 1;
  }
  return std::nullopt;
}

bool is_mig_slice(const Gres& gres) { return mig_profile(gres.type).has_value(); }

std::string gpu_vendor(const Gres& gres, const HostFacts& facts) {
  const bool has_nvidia = has_pci_vendor(facts.machine, "10de");
  const bool has_amd = has_pci_vendor(facts.machine, "1002");
  const std::string by_model = vendor_of_model(gres.type);
  if (has_nvidia && has_amd && !by_model.empty()) {
    return by_model;
  }
  if (!facts.slurm_conf.gpu_vendor.empty()) {
    return facts.slurm_conf.gpu_vendor;
  }
  if (has_nvidia != has_amd) {
    return has_nvidia ? "nvidia" : "amd";
  }
  if (!by_model.empty()) {
    return by_model;
  }
  // Only when nothing else counts: Intel graphics are usually the console.
  return !has_nvidia && !has_amd && facts.machine.gpus_by_pci_vendor.contains("8086") ? "intel"
                                                                                      : "";
}

std::map<std::string, SlurmGpus> gpus_by_vendor(const std::vector<Gres>& gres,
                                                const HostFacts& facts) {
  constexpr std::int64_t kMost = 1'000'000'000;
  std::map<std::string, SlurmGpus> out;
  for (const Gres& entry : gres) {
    if (entry.name == "gpu" && entry.count > 0) {
      SlurmGpus& gpus = out[gpu_vendor(entry, facts)];
      std::int64_t& sum = is_mig_slice(entry) ? gpus.slices : gpus.plain;
      sum = std::min(kMost, sum + std::min(kMost, entry.count));
    }
  }
  return out;
}

GpuCards cards_of(const MachineFacts& machine, const std::string& vendor) {
  GpuCards out;
  for (const GpuDevice& gpu : machine.gpus.value_or(std::vector<GpuDevice>{})) {
    if (gpu.vendor != vendor) {
      continue;
    }
    if (!gpu.has_driver) {
      out.driverless.push_back(gpu.pci_address);
      continue;
    }
    ++(gpu.slices == 0 ? out.whole : out.divided);
    out.slices = out.slices && gpu.slices ? std::optional{*out.slices + *gpu.slices} : std::nullopt;
  }
  return out;
}

bool names_its_slices(const SlurmGpus& gpus, const GpuCards& cards) {
  return gpus.slices > 0 && cards.slices && *cards.slices <= gpus.slices;
}

bool counts_slices_as_gpus(const SlurmGpus& gpus, const GpuCards& cards) {
  return cards.divided > 0 && gpus.least_cards() > cards.driven() && !names_its_slices(gpus, cards);
}

bool is_slice_file(const std::string& file) { return file.starts_with("/dev/nvidia-caps/"); }

std::vector<std::string> card_files(const SlurmConfFacts& conf) {
  std::vector<std::string> out;
  for (const auto& files : conf.gpu_files) {
    for (const std::string& file : files) {
      if (!is_slice_file(file) && std::find(out.begin(), out.end(), file) == out.end()) {
        out.push_back(file);
      }
    }
  }
  return out;
}

}  // namespace slurmlet::node
