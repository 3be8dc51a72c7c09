#include <algorithm>
#include <array>
#include <cstdint>

#include "tls/client_identity.h"

namespace slurmlet::tls {
namespace {

// RFC 4648 section 4.
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_values() {
  std::array<std::int8_t, 256> values{};
  for (auto& value : values) {
    value = -1;
  }
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}
constexpr auto kValues = make_values();

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Result<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (is_space(c)) {
      continue;
    }
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) {
      return Error{Code::kInvalid, "not base64: a character outside its alphabet"};
    }
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    if (++digits % 4 == 0) {
      bytes.push_back(static_cast<char>(bits >> 16U & 0xffU));
      bytes.push_back(static_cast<char>(bits >> 8U & 0xffU));
      bytes.push_back(static_cast<char>(bits & 0xffU));
    }
  }
  // Padding is what tells a whole value from one cut short.
  const std::size_t rest = digits % 4;
  if (rest == 1 || padding != (4 - rest) % 4) {
    return Error{Code::kInvalid, "not base64: it is truncated or wrongly padded"};
  }
  if (rest >= 2) {
    bytes.push_back(static_cast<char>(bits >> (rest == 2 ? 4U : 10U) & 0xffU));
  }
  if (rest == 3) {
    bytes.push_back(static_cast<char>(bits >> 2U & 0xffU));
  }
  return bytes;
}

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8U | (i < have ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= have ? kAlphabet[bits >> (18U - 6U * i) & 0x3fU] : '=');
    }
  }
  return text;
}

}  // namespace slurmlet::tls
