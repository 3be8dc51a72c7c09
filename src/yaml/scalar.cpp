#include "yaml/scalar.h"

#include <charconv>

#include "base/text.h"

namespace slurmlet::yaml {
namespace {

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    text.remove_prefix(1);
  }
  return text;
}

bool is_decimal(std::string_view text) {
  text = without_sign(text);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?, .inf or .nan, and what fits.
bool is_float(std::string_view text) {
  if (is_one_of(without_sign(text), {".inf", ".Inf", ".INF"}) ||
      is_one_of(text, {".nan", ".NaN", ".NAN"})) {
    return true;
  }
  text = without_sign(text);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  // from_chars alone knows "inf", "nan" and a second sign.
  return !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9')) &&
         error == std::errc{} && stop == end;
}

}  // namespace

std::optional<std::int64_t> core_int(std::string_view text) {
  if (text.starts_with("0o") || text.starts_with("0x")) {
    const auto digits = text.substr(2);
    // parse_int would take a sign here; the schema does not.
    if (without_sign(digits) != digits) {
      return std::nullopt;
    }
    return parse_int<std::int64_t>(digits, text[1] == 'o' ? 8 : 16);
  }
  if (!is_decimal(text)) {
    return std::nullopt;
  }
  if (text[0] == '+') {
    text.remove_prefix(1);
  }
  return parse_int<std::int64_t>(text);
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
  return is_float(text) ? Kind::kDouble : Kind::kString;
}

}  // namespace slurmlet::yaml
