#pragma once

// Reads what seldom changes about this machine: names, sizes, addresses, devices. It takes about a
// millisecond for dozens of small files, so call it at start and once per report interval. Copies
// from `others` what is read elsewhere: the three pressures (pressure.h); GPUs and the missing
// files of gres.conf (gpus.h); ephemeral storage (usage.h) and the system UUID, since the file
// system of the state directory may hang.
//
// Never fails as a whole: unreadable facts are empty or missing (node/facts.h). Thread-safe.

#include <string>
#include <string_view>

#include "host/host_paths.h"
#include "node/facts.h"

namespace slurmlet::host {

node::MachineFacts read_machine(const Paths& paths, node::MachineFacts others = {});

// uname -m → Go's GOARCH ("x86_64" → "amd64"); an unknown name is returned unchanged. Pure.
std::string goarch(std::string_view uname_machine);

// Unquoted PRETTY_NAME of an os-release(5) file; "" if missing. Pure.
std::string pretty_name(std::string_view os_release);

// The SMBIOS product UUID, for nodeInfo.systemUUID; "" if unknown.
//
// The kernel shows it to root only (/sys/class/dmi/id/product_uuid has mode 0400), and slurmlet is
// unprivileged. So the two sysfs paths are tried first, then STATE_DIR/system-uuid, which a
// privileged ExecStartPre may have written (see systemd/slurmlet.service).
std::string read_system_uuid(const Paths& paths);

// Lower case; "" if `text` is no UUID, or a vendor's placeholder that thousands of boards share.
// Pure.
std::string usable_uuid(std::string_view text);

}  // namespace slurmlet::host
