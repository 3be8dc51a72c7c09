#pragma once

// Counts PCI devices that a GPU resource could be made of: display controllers (class 0x03) and
// processing accelerators (class 0x12, e.g. AMD MI300), physical functions only. Classes are those
// of the PCI Code and ID Assignment Specification; sysfs files as in Documentation/ABI/testing/
// sysfs-bus-pci. The BMC's VGA controller (ASPEED 1a03, Matrox 102b) is counted too: the caller
// asks for the vendors it knows.

#include <filesystem>
#include <map>
#include <string>

#include "host/host_paths.h"

namespace slurmlet::host {

// Whether the device of this directory of /sys/bus/pci/devices is of those classes and physical.
bool is_gpu_function(const std::filesystem::path& device);

// PCI vendor ID, four lower-case hex digits → number of devices.
std::map<std::string, int> count_gpus_by_vendor(const Paths& paths);

}  // namespace slurmlet::host
