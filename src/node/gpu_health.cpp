#include "node/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "node/resources.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

constexpr char kAllPresent[] = "AllGPUsPresent";
constexpr char kMissing[] = "GPUMissing";
constexpr char kNotNamed[] = "GPUsNotNamed";
constexpr char kUnreadable[] = "GPUsUnreadable";
constexpr char kOnlySlices[] = "OnlyGPUSlices";
constexpr std::array kReasons{kAllPresent, kMissing, kNotNamed, kUnreadable, kOnlySlices};

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

struct Devices {
  std::int64_t driven = 0;
  std::vector<std::string> driverless;  // PCI addresses
};

Devices devices_of(const MachineFacts& machine, const std::string& vendor) {
  Devices out;
  for (const GpuDevice& gpu : machine.gpus.value_or(std::vector<GpuDevice>{})) {
    if (gpu.vendor == vendor) {
      out.driven += gpu.has_driver ? 1 : 0;
      if (!gpu.has_driver) {
        out.driverless.push_back(gpu.pci_address);
      }
    }
  }
  return out;
}

// What the machine has beyond Slurm's GPUs, for people; "" if nothing.
std::string surplus(std::int64_t slurm, const Devices& devices) {
  std::string text;
  if (const auto more = devices.driven - slurm; more > 0) {
    text = fmt::format("; GPUs not used by Slurm: {}", more);
  }
  if (!devices.driverless.empty()) {
    text += "; " + driverless_text(devices.driverless);
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
  for (const std::string& file : facts.slurm_conf.gpu_files) {
    if (!nodes.empty() && nvidia_minor(file) && !nodes.contains(file) &&
        std::find(out.begin(), out.end(), file) == out.end()) {
      out.push_back(file);
    }
  }
  return out;
}

Condition by_files(const HostFacts& facts, std::int64_t slurm) {
  const auto files = static_cast<std::int64_t>(facts.slurm_conf.gpu_files.size());
  const std::vector<std::string> missing = files_without_device(facts);
  const std::int64_t present = files - static_cast<std::int64_t>(missing.size());
  if (!missing.empty() && (present < slurm || slurm == 0)) {
    return verdict("False", kMissing,
                   slurm == files
                       ? slurm_has_but(slurm, present) + missing_text(missing)
                       : "of the GPU device files listed in gres.conf, " + missing_text(missing));
  }
  std::string message =
      slurm == 0 ? "all device files listed in gres.conf are present" : all_present(slurm);
  if (!missing.empty()) {
    message += "; gres.conf lists more files, of which " + missing_text(missing);
  }
  if (const std::string& vendor = facts.slurm_conf.gpu_vendor; slurm > 0 && !vendor.empty()) {
    message += surplus(slurm, devices_of(facts.machine, vendor));
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

// "" unless all devices are of one vendor.
std::string only_vendor(const std::vector<GpuDevice>& gpus) {
  const bool agree = !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), [&](const auto& gpu) {
    return gpu.vendor == gpus.front().vendor;
  });
  return agree ? gpus.front().vendor : "";
}

Condition not_named(std::int64_t slurm) {
  return verdict(
      "Unknown", kNotNamed,
      fmt::format("Slurm expects {}, but gres.conf specifies neither device files (File=) nor a "
                  "vendor (AutoDetect=), so the machine's GPUs cannot be checked against that",
                  counted(slurm, "GPU")));
}

Condition by_devices(const HostFacts& facts, std::int64_t slurm) {
  const std::vector<GpuDevice>& gpus = *facts.machine.gpus;
  const bool is_detected = !facts.slurm_conf.gpu_vendor.empty();
  const std::string vendor = is_detected ? facts.slurm_conf.gpu_vendor : only_vendor(gpus);
  if (vendor != "nvidia" && vendor != "amd") {
    return not_named(slurm);
  }
  const Devices devices = devices_of(facts.machine, vendor);
  if (devices.driven >= slurm) {
    return verdict("True", kAllPresent, all_present(slurm) + surplus(slurm, devices));
  }
  // Without AutoDetect the GPUs need not be these devices; one without a driver is enough.
  const auto all = devices.driven + static_cast<std::int64_t>(devices.driverless.size());
  if (!is_detected && all < slurm) {
    return not_named(slurm);
  }
  std::vector<std::string> causes;
  if (!devices.driverless.empty()) {
    causes.push_back(driverless_text(devices.driverless));
  }
  const std::vector<std::string> gone =
      vendor == "nvidia" ? gaps(gpus) : std::vector<std::string>{};
  if (!gone.empty()) {
    causes.push_back(missing_text(gone));
  }
  const auto unexplained = slurm - all - static_cast<std::int64_t>(gone.size());
  if (unexplained > 0) {
    causes.push_back(fmt::format("{} not on the PCI bus",
                                 unexplained == 1 ? "1 is" : fmt::format("{} are", unexplained)));
  }
  return verdict("False", kMissing, slurm_has_but(slurm, devices.driven) + join(causes, "; "));
}

}  // namespace

std::optional<Condition> gpu_condition(const HostFacts& facts) {
  const auto& gres = facts.slurm.record ? facts.slurm.record->gres : facts.slurm_conf.gres;
  std::int64_t whole = 0;
  bool has_slices = false;
  for (const Gres& entry : gres) {
    if (entry.name == "gpu" && entry.count > 0) {
      has_slices = has_slices || is_mig_slice(entry);
      whole += is_mig_slice(entry) ? 0 : entry.count;
    }
  }
  if (whole == 0 && !has_slices) {
    return std::nullopt;
  }
  if (facts.machine.gpus_hang) {
    return verdict("Unknown", kUnreadable, "the GPU driver does not answer");
  }
  if (!facts.slurm_conf.gpu_files.empty()) {
    return by_files(facts, whole);
  }
  if (whole == 0) {
    return verdict(
        "Unknown", kOnlySlices,
        "Slurm uses only GPU slices (MIG) here, which cannot be seen without the vendor's library");
  }
  if (!facts.machine.gpus) {
    return verdict("Unknown", kUnreadable, "the machine's PCI devices cannot be read");
  }
  return by_devices(facts, whole);
}

bool is_gpu_condition_of_ours(const Condition& condition) {
  return condition.type == vocabulary::kGpuHealthy &&
         std::any_of(kReasons.begin(), kReasons.end(),
                     [&](const char* reason) { return condition.reason == reason; });
}

}  // namespace slurmlet::node
