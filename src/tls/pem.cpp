#include "tls/pem.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>

#include "base/text.h"

namespace slurmlet::tls {
namespace {

// Without a callback of ours OpenSSL would prompt for the password on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

BioPtr open_text(std::string_view text) {
  return BioPtr{BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))};
}

template <typename Write>
std::string written(const Write& write) {
  const BioPtr bio{BIO_new(BIO_s_mem())};
  char* data = nullptr;
  const bool good = bio && write(bio.get()) == 1;
  ERR_clear_error();
  const long length = good ? BIO_get_mem_data(bio.get(), &data) : 0;
  return length > 0 ? std::string(data, static_cast<std::size_t>(length)) : std::string{};
}

}  // namespace

std::string take_openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string text = reason == nullptr ? "no reason given" : reason;
  ERR_clear_error();
  return text;
}

Result<std::vector<CertificatePtr>> parse_certificates(const std::string& text,
                                                       const std::string& name) {
  ERR_clear_error();
  const auto readable = utf8_text(text);  // OpenSSL passes over a block behind a byte order mark
  if (!readable) {
    return readable.error().with_prefix(name);
  }
  const BioPtr bio = open_text(*readable);
  std::vector<CertificatePtr> certificates;
  while (CertificatePtr next{PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  const unsigned long code = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  const std::string reason = take_openssl_error();
  if (!at_end) {
    return Error{Code::kInvalid, fmt::format("{}: certificate {} is damaged ({}); write it again",
                                             name, certificates.size() + 1, reason)};
  }
  if (certificates.empty()) {
    return Error{
        Code::kInvalid,
        name + ": contains no PEM certificate (-----BEGIN CERTIFICATE-----); put one there"};
  }
  return certificates;
}

Result<KeyPtr> parse_private_key(const std::string& text, const std::string& name) {
  const auto readable = utf8_text(text);
  if (!readable) {
    return readable.error().with_prefix(name);
  }
  // Said first: OpenSSL tries its decoders one after the other, which takes a millisecond.
  if (text.find("PRIVATE KEY-----") == std::string::npos) {
    return Error{
        Code::kInvalid,
        name + ": contains no PEM private key (-----BEGIN PRIVATE KEY-----); put one there"};
  }
  ERR_clear_error();
  const BioPtr bio = open_text(*readable);
  KeyPtr key{PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr)};
  // The reason OpenSSL gives is of no help here, and the less said about keys the better.
  ERR_clear_error();
  if (key) {
    return key;
  }
  if (text.find("ENCRYPTED") != std::string::npos) {
    return Error{Code::kInvalid, name +
                                     ": the private key is encrypted; store it without a "
                                     "password and with mode 0600"};
  }
  return Error{Code::kInvalid, name + ": the private key cannot be read; write it again"};
}

RequestPtr parse_request(const std::string& text) {
  ERR_clear_error();
  const BioPtr bio = open_text(text);
  return RequestPtr{PEM_read_bio_X509_REQ(bio.get(), nullptr, no_password, nullptr)};
}

StorePtr make_store() {
  StorePtr store{X509_STORE_new()};
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  return store;
}

Result<StorePtr> parse_trust(const std::string& ca, const std::string& ca_name) {
  const auto certificates = TRY(parse_certificates(ca, ca_name));
  StorePtr store = make_store();
  for (const auto& certificate : certificates) {
    if (X509_STORE_add_cert(store.get(), certificate.get()) != 1) {
      return Error{Code::kInternal, ca_name + ": " + take_openssl_error()};
    }
  }
  return store;
}

Result<Credential> parse_credential(const std::string& certificate,
                                    const std::string& certificate_name, const std::string& key,
                                    const std::string& key_name) {
  auto certificates = TRY(parse_certificates(certificate, certificate_name));
  auto private_key = TRY(parse_private_key(key, key_name));
  Credential own{std::move(certificates.front()), CertificatesPtr{sk_X509_new_null()},
                 std::move(private_key)};
  for (auto it = certificates.begin() + 1; it != certificates.end(); ++it) {
    sk_X509_push(own.chain.get(), it->release());
  }
  if (X509_check_private_key(own.leaf.get(), own.key.get()) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalid, key_name +
                                     ": the private key does not belong to the first "
                                     "certificate of " +
                                     certificate_name + "; give the pair that was issued"};
  }
  return own;
}

std::string to_pem(const X509* certificate) {
  return written([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string to_pem(const X509_REQ* request) {
  return written([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request); });
}

std::string to_pem(const EVP_PKEY* key) {
  return written([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace slurmlet::tls
