#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>

#include "base/try.h"
#include "tls/certificates.h"
#include "tls/openssl_ptr.h"
#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

// The DER form of a public key as `encode` (an i2d function) writes it; "" when it cannot.
template <typename Encode, typename Object>
std::string der(const Encode& encode, Object* object) {
  unsigned char* bytes = nullptr;
  const int length = encode(object, &bytes);
  if (length <= 0) {
    return {};
  }
  std::string text{reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)};
  OPENSSL_free(bytes);
  return text;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace

Result<std::string> generate_key() {
  const KeyPtr key{EVP_EC_gen("P-256")};
  std::string pem = key ? to_pem(key.get()) : std::string{};
  if (pem.empty()) {
    return Error{Code::kInternal, "cannot create a private key: " + take_openssl_error()};
  }
  return pem;
}

bool is_pair(const std::string& certificate_pem, const std::string& key_pem) {
  const auto certificates = parse_certificates(certificate_pem, {});
  const auto key = parse_private_key(key_pem, {});
  const bool is =
      certificates && key && X509_check_private_key(certificates->front().get(), key->get()) == 1;
  ERR_clear_error();
  return is;
}

Result<std::string> public_key_digest(const std::string& key_pem) {
  const auto key = TRY(parse_private_key(key_pem, "private key"));
  const std::string info = der(i2d_PUBKEY, key.get());
  if (info.empty()) {
    return Error{Code::kInternal, "the public key cannot be written: " + take_openssl_error()};
  }
  return hex(sha256(info));
}

Result<std::vector<PinnedCertificate>> certificates_with_pins(const std::string& certificates_pem,
                                                              const std::string& name) {
  const auto certificates = TRY(parse_certificates(certificates_pem, name));
  std::vector<PinnedCertificate> out;
  for (const auto& certificate : certificates) {
    const std::string info = der(i2d_X509_PUBKEY, X509_get_X509_PUBKEY(certificate.get()));
    if (info.empty()) {
      return Error{
          Code::kInvalid,
          fmt::format("{}: the public key of certificate {} cannot be read ({}); have it reissued",
                      name, out.size() + 1, take_openssl_error())};
    }
    out.push_back({"sha256:" + hex(sha256(info)), to_pem(certificate.get())});
  }
  ERR_clear_error();
  return out;
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace slurmlet::tls
