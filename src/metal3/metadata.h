#pragma once

// What the metadata of a Metal3 machine says, and which of it can be believed. Pure.
//
// The Bare Metal Operator builds meta_data from its defaults (uuid = UID of the BareMetalHost;
// metal3-name, metal3-namespace; name, local-hostname and local_hostname = name of the host) and
// lays the Metal3DataTemplate's metaData over them, to which CAPM3 adds
// providerid: <namespace>/<BareMetalHost>/<Metal3Machine> (baremetal/metal3data_manager.go,
// renderMetaData; BMO pkg/provisioner/ironic). All values are strings.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/facts.h"

namespace slurmlet::metal3 {

struct RawMetadata {
  std::map<std::string, std::string> values;  // top-level strings of meta_data
  std::vector<std::string> ip_addresses;      // static addresses of network_data, in its order
  std::string source;                         // for people and messages: file or device
};

struct Reading {
  std::optional<node::Metal3Facts> facts;  // nothing: this is not Metal3's metadata
  std::vector<std::string> notes;          // what was refused and the cure, for the log
};

// Without a uuid the metadata is another cloud's: no facts, no error. kInvalid when the uuid cannot
// be used. A providerid or a name that cannot be used is left out and noted: the machine can still
// be matched by the uuid label.
//
// Node name: `name`, else `local-hostname`, else `local_hostname`, the first that is a valid Node
// name in lower case. BMO's "namespace~name" is none.
Result<Reading> judge(const RawMetadata& raw);

}  // namespace slurmlet::metal3
