#pragma once

// Reads and validates the metadata of a Metal3 machine, from two places:
//
//  - cloud-init's /run/cloud-init/instance-data.json, keys ds.meta_data and ds.network_json
//    (https://cloudinit.readthedocs.io/en/latest/explanation/instancedata.html). It is world
//    readable and holds uuid, name and providerid unredacted. cloud-init rewrites it on every
//    boot before the network is up;
//  - the config drive's openstack/latest/{meta_data.json,network_data.json}, OpenStack's formats
//    (https://docs.openstack.org/nova/latest/user/metadata.html), for machines without that file
//    (Ignition images, cloud-init switched off after the first boot). Ironic puts the drive on the
//    root disk as a small partition with the label config-2, iso9660 or vfat.
//
// The Bare Metal Operator builds meta_data from its defaults (uuid = UID of the BareMetalHost;
// metal3-name, metal3-namespace; name, local-hostname and local_hostname = name of the host) and
// lays the Metal3DataTemplate's metaData over them, to which CAPM3 adds
// providerid: <namespace>/<BareMetalHost>/<Metal3Machine> (baremetal/metal3data_manager.go,
// renderMetaData; BMO pkg/provisioner/ironic). All values are strings.
//
// Thread-safe.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/facts.h"

namespace slurmlet::metal3 {

// The paths that metal3/ reads, so that tests can pass a tree of their own. Defaults to the running
// machine.
struct Paths {
  std::filesystem::path instance_data = "/run/cloud-init/instance-data.json";
  std::filesystem::path seed = "/var/lib/cloud/seed/config_drive";
  std::filesystem::path disks_by_label = "/dev/disk/by-label";
  std::filesystem::path mountinfo = "/proc/self/mountinfo";
  std::filesystem::path state_dir = "/var/lib/slurmlet";
};

struct Reading {
  std::optional<node::Metal3Facts> facts;  // nothing: not Metal3's metadata
  std::vector<std::string> notes;          // rejected values and their fix, for the log
};

// Metadata without uuid, metal3-name and metal3-namespace is another cloud's: no facts, no error.
// kNotFound: cloud-init ran and found no data source. kInvalid: invalid JSON or uuid; the message
// names `source` and the fix. An invalid providerid or name is omitted with a note, since the
// machine can still be matched by the uuid label. Invalid network data only means no addresses.
//
// Node name: the first of `name`, `local-hostname` and `local_hostname` that is valid in lower
// case; BMO's "namespace~name" is not. Pure.
Result<Reading> parse_instance_data(std::string_view text, const std::string& source);
// The same for the drive's files; `network_data` may be empty.
Result<Reading> parse_config_drive(std::string_view meta_data, std::string_view network_data,
                                   const std::string& source);

// kNotFound: cloud-init did not run, or the machine has none.
Result<Reading> read_instance_data(const std::filesystem::path& file);

// Reads cloud-init's seed directory, or else the mounted drive. kNotFound: there is no config
// drive. kDenied: it is not mounted; the message has the fix.
Result<Reading> read_config_drive(const Paths& paths);

// The mount point of the whole `device` (canonical path, or "8:4" as major:minor) in
// /proc/PID/mountinfo (proc_pid_mountinfo(5)). Pure.
std::optional<std::string> mount_point_of(std::string_view mountinfo, const std::string& device,
                                          const std::string& major_minor);

}  // namespace slurmlet::metal3
