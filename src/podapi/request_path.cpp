#include "podapi/request_path.h"

#include <vector>

#include "base/text.h"

namespace slurmlet::podapi {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<std::string> normalized_path(std::string_view path) {
  const auto decoded = percent_decoded(path);
  if (!decoded) {
    return std::nullopt;
  }
  std::vector<std::string_view> kept;
  for (const std::string_view segment : split(*decoded, '/')) {
    if (segment.empty() || segment == ".") {
      continue;
    }
    if (segment != "..") {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string clean;
  for (const std::string_view segment : kept) {
    clean += '/';
    clean += segment;
  }
  if (clean.empty() || decoded->ends_with('/')) {
    clean += '/';
  }
  return clean;
}

bool is_at_or_below(std::string_view path, std::string_view prefix) {
  if (prefix.ends_with('/')) {
    prefix.remove_suffix(1);
  }
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

}  // namespace slurmlet::podapi
