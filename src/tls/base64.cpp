#include <openssl/evp.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "base/text.h"
#include "tls/client_identity.h"

namespace slurmlet::tls {
namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

Result<std::string> base64_decode(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      digits += c;
    }
  }
  const std::size_t used = digits.find_last_not_of('=') + 1;  // npos + 1 == 0
  const std::size_t padding = digits.size() - used;
  // OpenSSL takes '=' for a digit wherever it stands, and counts it as a zero.
  if (digits.find('=') < used) {
    return Error{Code::kInvalid, "not base64: a character outside its alphabet"};
  }
  // Padding distinguishes a whole value from one cut short.
  if (digits.size() % 4 != 0 || padding > 2 || digits.size() > INT_MAX) {
    return Error{Code::kInvalid, "not base64: it is truncated or wrongly padded"};
  }
  std::string bytes(digits.size() / 4 * 3, '\0');
  // It ends at a '-' without a word.
  if (EVP_DecodeBlock(bytes_of(bytes), bytes_of(std::string_view{digits}),
                      static_cast<int>(digits.size())) != static_cast<int>(bytes.size())) {
    return Error{Code::kInvalid, "not base64: a character outside its alphabet"};
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::optional<std::string> base64url_decode(std::string_view text) {
  if (!all_alnum(text, "-_")) {
    return std::nullopt;
  }
  std::string standard{text};
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  standard.append((4 - standard.size() % 4) % 4, '=');
  auto bytes = base64_decode(standard);
  return bytes ? std::optional{std::move(*bytes)} : std::nullopt;
}

std::string base64_encode(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  // Its final NUL falls on the string's own.
  EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()));
  return text;
}

}  // namespace slurmlet::tls
