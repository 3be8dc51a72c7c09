#pragma once

// Reads Metal3's metadata from cloud-init's /run/cloud-init/instance-data.json, which is world
// readable and holds uuid, name and providerid unredacted. cloud-init writes it anew on every boot
// before the network is up. Thread-safe.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "metal3/metadata.h"

namespace slurmlet::metal3 {

// Pure. kInvalid: broken JSON, or a uuid that cannot be used; the message names `file` and the
// cure.
Result<Reading> parse_instance_data(std::string_view text, const std::string& file);

// kNotFound: cloud-init did not run, or the machine has none.
Result<Reading> read_instance_data(const std::filesystem::path& file);

}  // namespace slurmlet::metal3
