#include "tls/certificates.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

Error openssl_failed(const std::string& what) {
  return {Code::kInternal, what + ": " + take_openssl_error()};
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '\x7f';
  });
}

// As UTF8String, not through OpenSSL's table of string types: that would reject a common name of
// more than 64 bytes (X.520's bound), and "system:node:" with a DNS name is often longer.
bool add_name(X509_NAME* name, int nid, const std::string& value) {
  return X509_NAME_add_entry_by_NID(name, nid, V_ASN1_UTF8STRING,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

Status set_subject(X509_NAME* name, const CertificateSubject& subject) {
  for (const auto& organization : subject.organizations) {
    if (!is_plain(organization)) {
      return Error{Code::kInvalid,
                   "a certificate's organization is empty or has control "
                   "characters; give another one"};
    }
    if (!add_name(name, NID_organizationName, organization)) {
      return openssl_failed("organization of a certificate");
    }
  }
  if (!is_plain(subject.common_name)) {
    return Error{Code::kInvalid,
                 "a certificate's common name is empty or has control characters; "
                 "give another one"};
  }
  if (!add_name(name, NID_commonName, subject.common_name)) {
    return openssl_failed("common name of a certificate");
  }
  return {};
}

// Takes the bytes; false when memory is short.
bool push_name(GENERAL_NAMES* names, int type, std::string_view bytes) {
  std::unique_ptr<GENERAL_NAME, Releaser<GENERAL_NAME_free>> name{GENERAL_NAME_new()};
  std::unique_ptr<ASN1_STRING, Releaser<ASN1_STRING_free>> value{
      ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING)};
  if (!name || !value ||
      ASN1_STRING_set(value.get(), bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return false;
  }
  GENERAL_NAME_set0_value(name.get(), type, value.release());
  if (sk_GENERAL_NAME_push(names, name.get()) <= 0) {
    return false;
  }
  static_cast<void>(name.release());
  return true;
}

Result<std::string> address_octets(const std::string& text) {
  char octets[16];
  if (::inet_pton(AF_INET, text.c_str(), octets) == 1) {
    return std::string(octets, 4);
  }
  if (::inet_pton(AF_INET6, text.c_str(), octets) == 1) {
    return std::string(octets, 16);
  }
  return Error{Code::kInvalid, fmt::format("\"{}\" is not an IP address that a certificate can "
                                           "name; give it as 192.0.2.1 or 2001:db8::1",
                                           text)};
}

// Nothing if the subject has none.
Result<GeneralNamesPtr> alternative_names(const CertificateSubject& subject) {
  if (subject.dns_names.empty() && subject.ip_addresses.empty()) {
    return GeneralNamesPtr{};
  }
  GeneralNamesPtr names{GENERAL_NAMES_new()};
  for (const auto& dns : subject.dns_names) {
    const bool is_ascii =
        std::all_of(dns.begin(), dns.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
    if (dns.empty() || !is_ascii) {
      return Error{Code::kInvalid,
                   "a certificate's DNS name is empty or not ASCII; give it in its xn-- form"};
    }
    if (!push_name(names.get(), GEN_DNS, dns)) {
      return openssl_failed("DNS name of a certificate");
    }
  }
  for (const auto& address : subject.ip_addresses) {
    const auto octets = TRY(address_octets(address));
    if (!push_name(names.get(), GEN_IPADD, octets)) {
      return openssl_failed("IP address of a certificate");
    }
  }
  return names;
}

bool set_random_serial(X509* certificate) {
  // 127 bits are positive and at most 16 octets (RFC 5280 section 4.1.2.2 allows 20).
  const std::unique_ptr<BIGNUM, Releaser<BN_free>> number{BN_new()};
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool add_serving_extensions(X509* certificate) {
  const std::unique_ptr<BASIC_CONSTRAINTS, Releaser<BASIC_CONSTRAINTS_free>> not_a_ca{
      BASIC_CONSTRAINTS_new()};
  const std::unique_ptr<ASN1_BIT_STRING, Releaser<ASN1_BIT_STRING_free>> key_usage{
      ASN1_BIT_STRING_new()};
  const std::unique_ptr<EXTENDED_KEY_USAGE, Releaser<EXTENDED_KEY_USAGE_free>> purposes{
      EXTENDED_KEY_USAGE_new()};
  if (!not_a_ca || !key_usage || !purposes ||
      sk_ASN1_OBJECT_push(purposes.get(), OBJ_nid2obj(NID_server_auth)) <= 0 ||
      ASN1_BIT_STRING_set_bit(key_usage.get(), 0, 1) != 1) {  // digitalSignature
    return false;
  }
  return X509_add1_ext_i2d(certificate, NID_basic_constraints, not_a_ca.get(), 1, 0) == 1 &&
         X509_add1_ext_i2d(certificate, NID_key_usage, key_usage.get(), 1, 0) == 1 &&
         X509_add1_ext_i2d(certificate, NID_ext_key_usage, purposes.get(), 0, 0) == 1;
}

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

}  // namespace

Result<std::string> make_certificate_request(const std::string& key_pem,
                                             const CertificateSubject& subject) {
  const auto key = TRY(parse_private_key(key_pem, "key of the certificate request"));
  const auto names = TRY(alternative_names(subject));
  const RequestPtr request{X509_REQ_new()};
  if (!request) {
    return openssl_failed("certificate request");
  }
  TRY(set_subject(X509_REQ_get_subject_name(request.get()), subject));
  if (names) {
    STACK_OF(X509_EXTENSION)* list = nullptr;
    const bool made = X509V3_add1_i2d(&list, NID_subject_alt_name, names.get(), 0, 0) == 1;
    const ExtensionsPtr extensions{list};
    if (!made || X509_REQ_add_extensions(request.get(), extensions.get()) != 1) {
      return openssl_failed("names of a certificate request");
    }
  }
  if (X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0) {
    return openssl_failed("signature of a certificate request");
  }
  return to_pem(request.get());
}

Result<std::string> make_self_signed(const std::string& key_pem, const CertificateSubject& subject,
                                     WallTime not_before, WallTime not_after) {
  const auto key = TRY(parse_private_key(key_pem, "key of the self-signed certificate"));
  const auto names = TRY(alternative_names(subject));
  const CertificatePtr certificate{X509_new()};
  if (!certificate) {
    return openssl_failed("self-signed certificate");
  }
  X509* raw = certificate.get();
  TRY(set_subject(X509_get_subject_name(raw), subject));
  const auto seconds = [](WallTime time) { return std::chrono::system_clock::to_time_t(time); };
  const bool good =
      X509_set_version(raw, X509_VERSION_3) == 1 && set_random_serial(raw) &&
      ASN1_TIME_set(X509_getm_notBefore(raw), seconds(not_before)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(raw), seconds(not_after)) != nullptr &&
      X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
      X509_set_pubkey(raw, key.get()) == 1 && add_serving_extensions(raw) &&
      (!names || X509_add1_ext_i2d(raw, NID_subject_alt_name, names.get(), 0, 0) == 1) &&
      X509_sign(raw, key.get(), EVP_sha256()) > 0;
  if (!good) {
    return openssl_failed("self-signed certificate");
  }
  return to_pem(raw);
}

Result<CertificateSummary> read_certificate(const std::string& pem, const std::string& name) {
  const auto certificates = TRY(parse_certificates(pem, name));
  return summarize(*certificates.front());
}

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
  return sha256_hex(info);
}

Result<std::string> request_public_key_digest(const std::string& request_pem) {
  const RequestPtr request = parse_request(request_pem);
  const std::string info =
      request ? der(i2d_X509_PUBKEY, X509_REQ_get_X509_PUBKEY(request.get())) : std::string{};
  if (info.empty()) {
    return Error{Code::kInvalid,
                 "not a PEM certificate request (-----BEGIN CERTIFICATE REQUEST-----): " +
                     take_openssl_error()};
  }
  return sha256_hex(info);
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
    out.push_back({"sha256:" + sha256_hex(info), to_pem(certificate.get())});
  }
  ERR_clear_error();
  return out;
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string sha256_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : sha256(bytes)) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace slurmlet::tls
