#pragma once

// One value of /proc/meminfo (proc_meminfo(5)), in bytes. Pure.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace slurmlet::host {

inline std::optional<std::int64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") {
      continue;
    }
    std::string_view value = trim(line.substr(key.size() + 1));
    if (!value.ends_with(" kB")) {
      return std::nullopt;
    }
    value.remove_suffix(3);
    const auto kib = parse_int<std::int64_t>(value);
    return kib ? std::optional{*kib * 1024} : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace slurmlet::host
