#pragma once

// Reads the machine's GPUs without a vendor's library: PCI devices of NVIDIA and AMD with their
// driver (/sys/bus/pci/devices), NVIDIA's device numbers
// (/proc/driver/nvidia/gpus/ADDRESS/information), AMD's render nodes (drm/renderDN below the PCI
// device), and whether a card is divided into slices:
//   NVIDIA  /proc/driver/nvidia/capabilities/gpuN/mig/giG/ciC (N: the device number; the directory
//           mig is there without MIG, too): osRmCapRegister… in open-gpu-kernel-modules'
//           src/nvidia/arch/nvalloc/unix/src/os.c, "Device Nodes and Capabilities" of the MIG guide
//   AMD     current_compute_partition of the PCI device: SPX (whole), DPX, TPX, QPX, CPX, UNKNOWN;
//           unreadable in a reset: drivers/gpu/drm/amd/amdgpu/amdgpu_gfx.c of Linux. The other
//           partitions are platform devices (amdgpu_xcp_N), there in each mode: no sign of slices.
// Cannot detect a GPU that hangs, which needs the vendor's tools. Reads a few small files per PCI
// display device and wakes no GPU. Thread-safe.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/host_paths.h"
#include "node/facts.h"

namespace slurmlet::host {

// PCI vendor ID (four lower-case hex digits) → number of display controllers (class 0x03) and
// processing accelerators (class 0x12, e.g. AMD MI300), physical functions only. Classes are those
// of the PCI Code and ID Assignment Specification; sysfs files as in
// Documentation/ABI/testing/sysfs-bus-pci. Includes the BMC's VGA controller (ASPEED 1a03, Matrox
// 102b), since callers select vendors.
std::map<std::string, int> count_gpus_by_vendor(const Paths& paths);

// Sorted by PCI address; nothing if the PCI bus cannot be read.
std::optional<std::vector<node::GpuDevice>> read_gpus(const Paths& paths);

// Those of `files` (absolute paths, as in gres.conf) that do not exist, in order. A file that
// cannot be checked counts as existing.
std::vector<std::string> missing_files(const Paths& paths, const std::vector<std::string>& files);

// Reads both. A hanging driver blocks it, so call it on a thread that may hang (detached_task.h).
struct GpuReading {
  std::optional<std::vector<node::GpuDevice>> gpus;
  std::vector<std::string> missing_files;
};
GpuReading read_gpus_and_files(const Paths& paths, const std::vector<std::string>& files);

}  // namespace slurmlet::host
