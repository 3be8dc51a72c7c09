#include "host/gpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {
namespace {

struct Vendor {
  std::string_view pci_id;
  const char* name;
  std::string_view driver;  // the vendor's own; a GPU bound to vfio-pci or nouveau runs no jobs
};

constexpr std::array<Vendor, 2> kVendors{{
    {"0x10de", "nvidia", "nvidia"},
    {"0x1002", "amd", "amdgpu"},
}};

constexpr std::string_view kDev = "/dev/";

bool is_gpu_function(const std::filesystem::path& device) {
  const std::string device_class = to_lower(read_trimmed(device / "class"));
  if (!device_class.starts_with("0x03") && !device_class.starts_with("0x12")) {
    return false;
  }
  // A virtual function (SR-IOV) belongs to a device that is already counted.
  std::error_code ignored;
  return !std::filesystem::exists(device / "physfn", ignored);
}

// Sorted by PCI address; nothing if the bus cannot be read.
std::optional<std::vector<std::filesystem::path>> gpu_functions(const Paths& paths) {
  const auto devices = paths.sys / "bus/pci/devices";
  auto names = list_directory(devices);
  if (!names) {
    return std::nullopt;
  }
  std::sort(names->begin(), names->end());
  std::vector<std::filesystem::path> out;
  for (const std::string& name : *names) {
    if (is_gpu_function(devices / name)) {
      out.push_back(devices / name);
    }
  }
  return out;
}

std::string vendor_id(const std::filesystem::path& device) {
  return to_lower(read_trimmed(device / "vendor"));
}

const Vendor* vendor_of(const std::filesystem::path& device) {
  const std::string id = vendor_id(device);
  const auto found = std::find_if(kVendors.begin(), kVendors.end(),
                                  [&](const Vendor& vendor) { return vendor.pci_id == id; });
  return found == kVendors.end() ? nullptr : &*found;
}

std::filesystem::path resolve(const Paths& paths, const std::string& file) {
  return file.starts_with(kDev) ? paths.dev / file.substr(kDev.size())
                                : std::filesystem::path{file};
}

bool is_missing(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

// 3 of "Device Minor: 	 3"
std::optional<int> nvidia_minor(const Paths& paths, const std::string& address) {
  const auto text = read_file(paths.proc / "driver/nvidia/gpus" / address / "information");
  const auto minor = parse_int<int>(value_behind("Device Minor:", text ? *text : ""));
  return minor && *minor >= 0 ? minor : std::nullopt;
}

// The names in `directory` that are `prefix` and a number, none if it does not exist; nothing if it
// cannot be read.
std::optional<std::vector<std::string>> numbered(const std::filesystem::path& directory,
                                                 const std::string& prefix) {
  auto names = list_directory(directory);
  if (!names) {
    return is_missing(directory) ? std::optional<std::vector<std::string>>{std::in_place}
                                 : std::nullopt;
  }
  std::erase_if(*names, [&](const std::string& name) {
    return !name.starts_with(prefix) || !parse_int<int>(name.substr(prefix.size()));
  });
  return *names;
}

// Counts compute instances. A GPU instance without one still occupies a part of the card.
std::optional<int> mig_slices(const Paths& paths, std::optional<int> minor) {
  const auto capabilities = paths.proc / "driver/nvidia/capabilities";
  if (!minor) {
    return is_missing(capabilities) ? std::optional{0} : std::nullopt;
  }
  const auto mig = capabilities / ("gpu" + std::to_string(*minor)) / "mig";
  const auto gpu_instances = numbered(mig, "gi");
  int slices = 0;
  for (const auto& instance : gpu_instances.value_or(std::vector<std::string>{})) {
    const auto compute_instances = numbered(mig / instance, "ci");
    if (!compute_instances) {
      return std::nullopt;
    }
    slices += std::max(1, static_cast<int>(compute_instances->size()));
  }
  return gpu_instances ? std::optional{slices} : std::nullopt;
}

// The number of partitions in a mode depends on the model (CPX: one per die).
std::optional<int> compute_partitions(const std::filesystem::path& device) {
  const auto file = device / "current_compute_partition";
  const bool is_whole = is_missing(file) || to_upper(read_trimmed(file)) == "SPX";
  return is_whole ? std::optional{0} : std::nullopt;
}

std::string render_node(const std::filesystem::path& device) {
  const auto names = list_directory(device / "drm");
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (name.starts_with("renderD")) {
      return "/dev/dri/" + name;
    }
  }
  return "";
}

node::GpuDevice read_gpu(const Paths& paths, const std::filesystem::path& device,
                         const Vendor& vendor) {
  node::GpuDevice gpu;
  gpu.pci_address = device.filename();
  gpu.vendor = vendor.name;
  std::error_code error;
  const auto driver = std::filesystem::read_symlink(device / "driver", error);
  gpu.has_driver = !error && driver.filename().string() == vendor.driver;
  if (gpu.has_driver) {
    if (vendor.name == std::string_view{"nvidia"}) {
      const auto minor = nvidia_minor(paths, gpu.pci_address);
      gpu.device_node = minor ? "/dev/nvidia" + std::to_string(*minor) : "";
      gpu.slices = mig_slices(paths, minor);
    } else {
      gpu.device_node = render_node(device);
      gpu.slices = compute_partitions(device);
    }
    if (!gpu.device_node.empty() && is_missing(resolve(paths, gpu.device_node))) {
      gpu.device_node.clear();
    }
  }
  return gpu;
}

}  // namespace

std::map<std::string, int> count_gpus_by_vendor(const Paths& paths) {
  std::map<std::string, int> counts;
  const auto devices = gpu_functions(paths);
  for (const auto& device : devices ? *devices : std::vector<std::filesystem::path>{}) {
    const std::string vendor = vendor_id(device);
    if (vendor.size() == 6 && vendor.starts_with("0x")) {
      ++counts[vendor.substr(2)];
    }
  }
  return counts;
}

std::optional<std::vector<node::GpuDevice>> read_gpus(const Paths& paths) {
  const auto devices = gpu_functions(paths);
  if (!devices) {
    return std::nullopt;
  }
  std::vector<node::GpuDevice> gpus;
  for (const auto& device : *devices) {
    if (const Vendor* vendor = vendor_of(device)) {
      gpus.push_back(read_gpu(paths, device, *vendor));
    }
  }
  return gpus;
}

std::vector<std::string> missing_files(const Paths& paths, const std::vector<std::string>& files) {
  std::vector<std::string> out;
  std::copy_if(files.begin(), files.end(), std::back_inserter(out),
               [&](const std::string& file) { return is_missing(resolve(paths, file)); });
  return out;
}

GpuReading read_gpus_and_files(const Paths& paths, const std::vector<std::string>& files) {
  return {read_gpus(paths), missing_files(paths, files)};
}

}  // namespace slurmlet::host
