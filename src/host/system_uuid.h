#pragma once

// The SMBIOS product UUID of this machine, as Kubernetes' nodeInfo.systemUUID.
//
// The kernel shows it only to root (/sys/class/dmi/id/product_uuid is mode 0400), and slurmlet runs
// unprivileged. So the two sysfs paths are tried first, then the copy that a privileged
// ExecStartPre may have left in STATE_DIR/system-uuid (see systemd/slurmlet.service). Boards whose
// maker never set a UUID carry one of a few placeholders, the same on thousands of machines: those
// count as none.

#include <string>
#include <string_view>

#include "host/host_paths.h"

namespace slurmlet::host {

// Lower case; "" if `text` is no UUID or a known placeholder. Pure.
std::string usable_uuid(std::string_view text);

// "" if unknown.
std::string read_system_uuid(const Paths& paths);

}  // namespace slurmlet::host
