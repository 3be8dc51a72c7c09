#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tls/certificates.h"

namespace slurmlet::tls {
namespace {

// {"alg":"HS256","kid":"abcdef"} with room to spare.
constexpr std::size_t kMaxHeaderBytes = 1024;
constexpr std::size_t kDigestBytes = 32;

std::string base64url_encode(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  text.erase(text.find_last_not_of('=') + 1);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Extensions that a signer marks as critical must not be ignored (section 4.1.11); none is known
// here.
bool names_key(std::string_view header, const std::string& key_id) {
  const auto text = base64url_decode(header);
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  const auto is = [&](const char* field, const std::string& value) {
    const auto at = json.find(field);
    return at != json.end() && at->is_string() && at->get_ref<const std::string&>() == value;
  };
  return json.is_object() && is("alg", "HS256") && is("kid", key_id) && !json.contains("crit");
}

}  // namespace

bool is_signed_with_token(std::string_view jws, std::string_view payload, const std::string& key_id,
                          const std::string& secret) {
  const std::size_t dots = jws.find("..");
  if (dots == std::string_view::npos || dots > kMaxHeaderBytes || key_id.empty() ||
      secret.empty()) {
    return false;
  }
  const std::string_view header = jws.substr(0, dots);
  const auto signature = base64url_decode(jws.substr(dots + 2));
  if (!signature || signature->size() != kDigestBytes || !names_key(header, key_id)) {
    return false;
  }
  const std::string input = std::string{header} + "." + base64url_encode(payload);
  unsigned char expected[kDigestBytes];
  const bool computed = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                             reinterpret_cast<const unsigned char*>(input.data()), input.size(),
                             expected, nullptr) != nullptr;
  ERR_clear_error();
  return computed && CRYPTO_memcmp(expected, signature->data(), kDigestBytes) == 0;
}

}  // namespace slurmlet::tls
