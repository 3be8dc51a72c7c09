#pragma once

// One value of /proc/meminfo (proc_meminfo(5)), in bytes. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace slurmlet::host {

inline std::optional<std::int64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  const auto value = value_behind(std::string{key} + ":", meminfo);
  if (!value.ends_with(" kB")) {
    return std::nullopt;
  }
  const auto kib = parse_int<std::int64_t>(value.substr(0, value.size() - 3));
  return kib ? std::optional{*kib * 1024} : std::nullopt;
}

}  // namespace slurmlet::host
