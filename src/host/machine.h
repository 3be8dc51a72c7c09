#pragma once

// Reads what seldom changes about this machine: names, sizes, addresses, devices. Some dozens of
// small files, about a millisecond: call it at start and once a report interval, not each tick.
// What comes from elsewhere stays as in `others`: the three pressures (pressure.h); the GPUs and
// their missing files, which gres.conf names (gpus.h); the ephemeral storage (usage.h) and the
// system UUID, for the file system of the state directory may hang.
//
// Never fails as a whole: what cannot be read is empty or missing in the answer (node/facts.h says
// what that means). Thread-safe.

#include <string>
#include <string_view>

#include "host/host_paths.h"
#include "node/facts.h"

namespace slurmlet::host {

node::MachineFacts read_machine(const Paths& paths, node::MachineFacts others = {});

// uname -m → Go's GOARCH ("x86_64" → "amd64"); an unknown name is returned as it is. Pure.
std::string goarch(std::string_view uname_machine);

// PRETTY_NAME of an os-release(5) file, unquoted; "" if it has none. Pure.
std::string pretty_name(std::string_view os_release);

// The SMBIOS product UUID of this machine, as Kubernetes' nodeInfo.systemUUID; "" if unknown.
//
// The kernel shows it only to root (/sys/class/dmi/id/product_uuid is mode 0400), and slurmlet runs
// unprivileged. So the two sysfs paths are tried first, then the copy that a privileged
// ExecStartPre may have left in STATE_DIR/system-uuid (see systemd/slurmlet.service).
std::string read_system_uuid(const Paths& paths);

// Lower case; "" if `text` is no UUID, or one of a few placeholders that boards carry whose maker
// never set one, the same on thousands of machines. Pure.
std::string usable_uuid(std::string_view text);

}  // namespace slurmlet::host
