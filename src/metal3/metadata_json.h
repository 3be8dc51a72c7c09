#pragma once

// The two JSON forms in which a Metal3 machine finds its metadata, reduced to RawMetadata. Pure.
//
//  - cloud-init's instance-data.json, keys ds.meta_data and ds.network_json
//    (https://cloudinit.readthedocs.io/en/latest/explanation/instancedata.html)
//  - the config drive's meta_data.json and network_data.json, OpenStack's formats
//    (https://docs.openstack.org/nova/latest/user/metadata.html)
//
// Network data that cannot be understood only means no addresses: the identity does not hang on it.

#include <string>
#include <string_view>

#include "base/result.h"
#include "metal3/metadata.h"

namespace slurmlet::metal3 {

// kInvalid when the text is not a JSON object. Without ds.meta_data the values are empty.
Result<RawMetadata> from_instance_data(std::string_view text, const std::string& source);

// The same for meta_data.json; `network_data` may be empty.
Result<RawMetadata> from_config_drive(std::string_view meta_data, std::string_view network_data,
                                      const std::string& source);

}  // namespace slurmlet::metal3
