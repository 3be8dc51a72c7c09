#include "config/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace slurmlet::config {
namespace {

constexpr double kMaxMilliseconds = 100.0 * 366 * 24 * 3600 * 1000;

// Longer names first: "ms" must not be read as minutes.
constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{
    {"ns", 1e-6},
    {"us", 1e-3},
    {"\xc2\xb5s", 1e-3},
    {"\xce\xbcs", 1e-3},
    {"ms", 1.0},
    {"s", 1000.0},
    {"m", 60'000.0},
    {"h", 3'600'000.0},
}};

// Takes "12" or "1.5" (no sign, no exponent) from the front.
std::optional<double> take_number(std::string_view& text) {
  const auto length = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + length, value, std::chars_format::fixed);
  if (length == 0 || error != std::errc{} || end != text.data() + length) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return value;
}

// The milliseconds of the unit at the front.
std::optional<double> take_unit(std::string_view& text) {
  for (const auto& [name, milliseconds] : kUnits) {
    if (text.starts_with(name)) {
      text.remove_prefix(name.size());
      return milliseconds;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double total = 0;
  bool first = true;
  do {
    const auto number = take_number(text);
    if (!number) {
      return std::nullopt;
    }
    const bool plain_seconds = first && text.empty();
    const auto unit = plain_seconds ? std::optional{1000.0} : take_unit(text);
    if (!unit) {
      return std::nullopt;
    }
    total += *number * *unit;
    first = false;
  } while (!text.empty());
  const double whole = std::round(total);
  if (total > kMaxMilliseconds || std::abs(whole - total) > 1e-4) {
    return std::nullopt;
  }
  return Milliseconds{static_cast<std::int64_t>(negative ? -whole : whole)};
}

std::string format_duration(Milliseconds duration) {
  std::int64_t left = duration.count();
  if (left == 0) {
    return "0s";
  }
  std::string out = left < 0 ? "-" : "";
  left = std::abs(left);
  constexpr std::array<std::pair<const char*, std::int64_t>, 4> kParts = {
      {{"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
  for (const auto& [name, size] : kParts) {
    if (left >= size) {
      out += fmt::format("{}{}", left / size, name);
      left %= size;
    }
  }
  return out;
}

}  // namespace slurmlet::config
