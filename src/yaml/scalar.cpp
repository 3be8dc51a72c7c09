#include "yaml/scalar.h"

#include <charconv>
#include <limits>
#include <string>

namespace slurmlet::yaml {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    text.remove_prefix(1);
  }
  return text;
}

std::size_t take_digits(std::string_view& text) {
  const auto end = std::min(text.find_first_not_of(kDigits), text.size());
  text.remove_prefix(end);
  return end;
}

bool is_decimal(std::string_view text) {
  text = without_sign(text);
  return take_digits(text) > 0 && text.empty();
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  text = without_sign(text);
  const std::size_t whole = take_digits(text);
  std::size_t fraction = 0;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole + fraction == 0) {
    return false;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text = without_sign(text.substr(1));
    if (take_digits(text) == 0) {
      return false;
    }
  }
  return text.empty();
}

std::optional<std::int64_t> number_in_base(std::string_view text, int base) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<std::int64_t> core_int(std::string_view text) {
  if (text.starts_with("0o") || text.starts_with("0x")) {
    const auto digits = text.substr(2);
    // from_chars would take a sign here; the schema does not.
    if (without_sign(digits) != digits) {
      return std::nullopt;
    }
    return number_in_base(digits, text[1] == 'o' ? 8 : 16);
  }
  if (!is_decimal(text)) {
    return std::nullopt;
  }
  if (text[0] == '+') {
    text.remove_prefix(1);
  }
  return number_in_base(text, 10);
}

std::optional<double> core_double(std::string_view text) {
  if (is_one_of(without_sign(text), {".inf", ".Inf", ".INF"})) {
    const double infinity = std::numeric_limits<double>::infinity();
    return text[0] == '-' ? -infinity : infinity;
  }
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (!is_float(text)) {
    return std::nullopt;
  }
  if (text[0] == '+') {
    text.remove_prefix(1);
  }
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return value;
}

Kind plain_kind(std::string_view text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) {
    return Kind::kNull;
  }
  if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    return Kind::kBool;
  }
  if (core_int(text)) {
    return Kind::kInt;
  }
  return core_double(text) ? Kind::kDouble : Kind::kString;
}

}  // namespace slurmlet::yaml
