#include "host/pci.h"

#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {

bool is_gpu_function(const std::filesystem::path& device) {
  const std::string device_class = to_lower(read_trimmed(device / "class"));
  if (!device_class.starts_with("0x03") && !device_class.starts_with("0x12")) {
    return false;
  }
  // A virtual function (SR-IOV) is a slice of a device that is already counted.
  std::error_code ignored;
  return !std::filesystem::exists(device / "physfn", ignored);
}

std::map<std::string, int> count_gpus_by_vendor(const Paths& paths) {
  std::map<std::string, int> counts;
  const auto devices = paths.sys / "bus/pci/devices";
  const auto names = list_directory(devices);
  if (!names) {
    return counts;
  }
  for (const std::string& name : *names) {
    if (!is_gpu_function(devices / name)) {
      continue;
    }
    const std::string vendor = to_lower(read_trimmed(devices / name / "vendor"));
    if (vendor.size() == 6 && vendor.starts_with("0x")) {
      ++counts[vendor.substr(2)];
    }
  }
  return counts;
}

}  // namespace slurmlet::host
