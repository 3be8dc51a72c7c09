#include "node/resources.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/text.h"
#include "node/slurm_view.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

// The canonical form of resource.Quantity (apimachinery), which is what the API server shows: the
// largest suffix that leaves a whole number. Any other form would look like a change for ever.
std::string canonical(std::int64_t value, std::int64_t step,
                      std::initializer_list<const char*> suffixes) {
  const char* suffix = "";
  for (const char* next : suffixes) {
    if (value == 0 || value % step != 0) {
      break;
    }
    value /= step;
    suffix = next;
  }
  return std::to_string(value) + suffix;
}

std::string decimal_quantity(std::int64_t count) {
  return canonical(count, 1000, {"k", "M", "G", "T", "P"});
}

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

// Only when the machine has cards of one vendor. Intel graphics count only when nothing else does:
// they are usually the console.
std::string vendor_of_machine(const MachineFacts& machine) {
  const auto has = [&](const char* vendor) {
    const auto found = machine.gpus_by_pci_vendor.find(vendor);
    return found != machine.gpus_by_pci_vendor.end() && found->second > 0;
  };
  const bool nvidia = has("10de");
  const bool amd = has("1002");
  if (nvidia != amd) {
    return nvidia ? "nvidia" : "amd";
  }
  return "";
}

bool has_only_intel(const MachineFacts& machine) {
  const auto& gpus = machine.gpus_by_pci_vendor;
  return gpus.contains("8086") && !gpus.contains("10de") && !gpus.contains("1002");
}

// "3g.71gb" of "h200_3g.71gb", nothing if the type is no MIG slice.
std::optional<std::string> mig_profile(const std::string& type) {
  const auto start = type.find_last_of("_-") == std::string::npos ? 0 : type.find_last_of("_-") + 1;
  const std::string_view tail = std::string_view{type}.substr(start);
  const auto dot = tail.find("g.");
  if (dot == std::string_view::npos || !tail.ends_with("gb")) {
    return std::nullopt;
  }
  const auto slices = parse_int<int>(tail.substr(0, dot));
  const auto memory = parse_int<int>(tail.substr(dot + 2, tail.size() - dot - 4));
  return slices && memory ? std::optional<std::string>{std::string{tail}} : std::nullopt;
}

// At most what the hardware has, and nothing below zero.
std::int64_t within(std::int64_t capacity, std::int64_t usable) {
  return std::clamp<std::int64_t>(usable, 0, capacity);
}

// Slurm counts CPUs as slurm.conf says: as threads, or as cores.
std::int64_t allocatable_cpus(std::int64_t capacity, const HostFacts& facts) {
  const auto& conf = facts.slurm_conf;
  const std::int64_t by_conf = (conf.cpus > 0 ? conf.cpus : capacity) - conf.core_spec_cpus;
  return within(capacity, usable_cpus(facts).value_or(by_conf));
}

std::int64_t allocatable_memory(std::int64_t capacity, const HostFacts& facts) {
  std::int64_t usable = capacity;
  std::int64_t reserved = facts.slurm_conf.mem_spec_limit_mib;
  if (const auto& record = facts.slurm.record) {
    reserved = record->mem_spec_limit_mib.value_or(reserved);
    // RealMemory is 1 where slurm.conf does not set it: not a limit.
    if (record->real_memory_mib.value_or(1) > 1) {
      usable = std::min(usable, bytes_of_mib(*record->real_memory_mib));
    }
  }
  return within(capacity, usable - bytes_of_mib(reserved));
}

void add_gpu_resources(const HostFacts& facts, const NodePolicy& policy, Resources& out) {
  if (!facts.slurm.record) {
    return;
  }
  std::map<std::string, std::int64_t> counts;
  for (const Gres& gres : facts.slurm.record->gres) {
    if (gres.name == "gpu" && gres.count > 0) {
      counts[gpu_resource(gres, facts, policy)] += gres.count;
    }
  }
  for (const auto& [name, count] : counts) {
    out.gpus.push_back(name);
    out.capacity[name] = decimal_quantity(count);
    out.allocatable[name] = decimal_quantity(count);
  }
}

}  // namespace

std::string gpu_resource(const Gres& gres, const HostFacts& facts, const NodePolicy& policy) {
  for (const std::string& key : {gres.name + ":" + gres.type, gres.name}) {
    if (const auto found = policy.gpu_resources.find(key); found != policy.gpu_resources.end()) {
      return found->second;
    }
  }
  std::string vendor = facts.slurm_conf.gpu_vendor;
  if (vendor.empty()) {
    vendor = vendor_of_machine(facts.machine);
  }
  if (vendor.empty()) {
    vendor = vendor_of_model(gres.type);
  }
  if (vendor.empty() && has_only_intel(facts.machine)) {
    vendor = "intel";
  }
  if (const auto profile = mig_profile(gres.type); profile && vendor != "amd") {
    return "nvidia.com/mig-" + *profile;
  }
  if (vendor == "nvidia") {
    return "nvidia.com/gpu";
  }
  if (vendor == "amd") {
    return "amd.com/gpu";
  }
  return vendor == "intel" ? "gpu.intel.com/i915" : vocabulary::kGenericGpu;
}

std::string binary_quantity(std::int64_t bytes) {
  return canonical(bytes - bytes % 1024, 1024, {"Ki", "Mi", "Gi", "Ti", "Pi"});
}

std::int64_t bytes_of_mib(std::int64_t mib) {
  return std::clamp<std::int64_t>(mib, 0, std::numeric_limits<std::int64_t>::max() / kMiB) * kMiB;
}

bool is_mig_slice(const Gres& gres) { return mig_profile(gres.type).has_value(); }

Resources resources(const HostFacts& facts, const NodePolicy& policy) {
  Resources out;
  const MachineFacts& machine = facts.machine;
  if (machine.cpus) {
    out.capacity["cpu"] = decimal_quantity(*machine.cpus);
    out.allocatable["cpu"] = decimal_quantity(allocatable_cpus(*machine.cpus, facts));
  }
  if (machine.memory_bytes) {
    out.capacity["memory"] = binary_quantity(*machine.memory_bytes);
    out.allocatable["memory"] = binary_quantity(allocatable_memory(*machine.memory_bytes, facts));
  }
  if (machine.ephemeral_storage_bytes) {
    out.capacity["ephemeral-storage"] = binary_quantity(*machine.ephemeral_storage_bytes);
    out.allocatable["ephemeral-storage"] = binary_quantity(*machine.ephemeral_storage_bytes);
  }
  out.capacity["pods"] = "0";
  out.allocatable["pods"] = "0";
  add_gpu_resources(facts, policy, out);
  return out;
}

}  // namespace slurmlet::node
