#include "node/resources.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

#include "node/gpu_cards.h"
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

// nvidia.com/gpu is the name of a card.
bool may_be_slices(const std::string& vendor, const HostFacts& facts) {
  if (!facts.slurm.record) {
    return false;
  }
  const auto gpus = gpus_by_vendor(facts.slurm.record->gres, facts);
  const auto found = gpus.find(vendor);
  return found != gpus.end() &&
         counts_slices_as_gpus(found->second, cards_of(facts.machine, vendor));
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
  const std::string vendor = gpu_vendor(gres, facts);
  if (vendor == "amd") {
    return "amd.com/gpu";
  }
  if (auto profile = mig_profile(gres.type)) {
    std::replace(profile->begin(), profile->end(), '+', '.');
    return "nvidia.com/mig-" + *profile;
  }
  if (vendor == "nvidia") {
    return may_be_slices(vendor, facts) ? vocabulary::kGenericGpu : "nvidia.com/gpu";
  }
  return vendor == "intel" ? "gpu.intel.com/i915" : vocabulary::kGenericGpu;
}

std::string binary_quantity(std::int64_t bytes) {
  return canonical(bytes - bytes % 1024, 1024, {"Ki", "Mi", "Gi", "Ti", "Pi"});
}

std::int64_t bytes_of_mib(std::int64_t mib) {
  return std::clamp<std::int64_t>(mib, 0, std::numeric_limits<std::int64_t>::max() / kMiB) * kMiB;
}

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
