#include "host/system_uuid.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {
namespace {

constexpr std::array<std::string_view, 4> kPlaceholders = {
    "03000200-0400-0500-0006-000700080009",  // AMI's default, seen on many boards
    "00020003-0004-0005-0006-000700080009",  // the same in the other byte order
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "01234567-89ab-cdef-0123-456789abcdef",
};

bool has_uuid_form(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) {
      return false;
    }
  }
  return true;
}

// 00000000-…, ffffffff-…, and whatever other single digit a maker chose.
bool is_one_digit(std::string_view uuid) {
  return std::all_of(uuid.begin(), uuid.end(),
                     [&](char c) { return c == '-' || c == uuid.front(); });
}

}  // namespace

std::string usable_uuid(std::string_view text) {
  std::string uuid = to_lower(trim(text));
  const bool placeholder =
      std::find(kPlaceholders.begin(), kPlaceholders.end(), uuid) != kPlaceholders.end();
  if (!has_uuid_form(uuid) || is_one_digit(uuid) || placeholder) {
    return {};
  }
  return uuid;
}

std::string read_system_uuid(const Paths& paths) {
  const std::array<std::filesystem::path, 3> sources = {
      paths.sys / "class/dmi/id/product_uuid",
      paths.sys / "devices/virtual/dmi/id/product_uuid",
      paths.state_dir / "system-uuid",
  };
  for (const auto& source : sources) {
    if (std::string uuid = usable_uuid(read_trimmed(source)); !uuid.empty()) {
      return uuid;
    }
  }
  return {};
}

}  // namespace slurmlet::host
