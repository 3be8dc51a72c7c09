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
  std::string_view driver;  // the vendor's own: a GPU that vfio-pci or nouveau holds runs no jobs
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
  // A virtual function (SR-IOV) is a slice of a device that is already counted.
  std::error_code ignored;
  return !std::filesystem::exists(device / "physfn", ignored);
}

// By PCI address; nothing where the bus cannot be read.
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

// "Device Minor: 	 3" → "/dev/nvidia3"
std::string nvidia_node(const Paths& paths, const std::string& address) {
  const auto text = read_file(paths.proc / "driver/nvidia/gpus" / address / "information");
  const auto minor = parse_int<int>(value_behind("Device Minor:", text ? *text : ""));
  return minor && *minor >= 0 ? "/dev/nvidia" + std::to_string(*minor) : "";
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
    const bool is_nvidia = vendor.name == std::string_view{"nvidia"};
    gpu.device_node = is_nvidia ? nvidia_node(paths, gpu.pci_address) : render_node(device);
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
