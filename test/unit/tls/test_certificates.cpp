#include "tls/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <memory>

#include "tls/openssl_ptr.h"

namespace slurmlet::tls {
namespace {

std::string bio_text(BIO* bio) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(length)};
}

std::string key_pem(EVP_PKEY* key, const char* password = nullptr) {
  const BioPtr bio{BIO_new(BIO_s_mem())};
  require(PEM_write_bio_PKCS8PrivateKey(bio.get(), key,
                                        password == nullptr ? nullptr : EVP_aes_128_cbc(), password,
                                        password == nullptr ? 0 : 4, nullptr, nullptr) == 1);
  return bio_text(bio.get());
}

std::string certificate_pem(X509* certificate) {
  const BioPtr bio{BIO_new(BIO_s_mem())};
  require(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return bio_text(bio.get());
}

CertificatePtr certificate_of(const std::string& pem) {
  const BioPtr bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  return CertificatePtr{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
}

KeyPtr read_key(const std::string& pem) {
  const BioPtr bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  return KeyPtr{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)};
}

void add_extension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  require(extension != nullptr);
  require(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void add_name(X509_NAME* name, const char* field, const std::string& value) {
  require(X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
                                     0) == 1);
}

Issued sign(const CertificateSpec& spec, KeyPtr key, const Issued* ca) {
  static std::atomic<long> serial = 1;
  const CertificatePtr certificate{X509_new()};
  X509* raw = certificate.get();
  X509_set_version(raw, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), serial++);
  ASN1_TIME_set(X509_getm_notBefore(raw), std::chrono::system_clock::to_time_t(spec.not_before));
  ASN1_TIME_set(X509_getm_notAfter(raw), std::chrono::system_clock::to_time_t(spec.not_after));
  X509_NAME* subject = X509_get_subject_name(raw);
  for (const auto& organization : spec.organizations) {
    add_name(subject, "O", organization);
  }
  add_name(subject, "CN", spec.common_name);
  X509_set_pubkey(raw, key.get());
  if (spec.is_ca) {
    add_extension(raw, NID_basic_constraints, "critical,CA:TRUE");
  }
  if (!spec.purposes.empty()) {
    add_extension(raw, NID_ext_key_usage, spec.purposes);
  }
  for (std::string all; const auto& name : spec.names) {
    all += (all.empty() ? "" : ",") + name;
    if (&name == &spec.names.back()) {
      add_extension(raw, NID_subject_alt_name, all);
    }
  }
  const KeyPtr ca_key = ca == nullptr ? nullptr : read_key(ca->key);
  const CertificatePtr issuer = ca == nullptr ? nullptr : certificate_of(ca->certificate);
  X509_set_issuer_name(raw, issuer ? X509_get_subject_name(issuer.get()) : subject);
  require(X509_sign(raw, ca_key ? ca_key.get() : key.get(), EVP_sha256()) > 0);
  return {certificate_pem(raw), key_pem(key.get())};
}

}  // namespace

Issued make_self_signed(const CertificateSpec& spec) {
  return sign(spec, KeyPtr{EVP_EC_gen("P-256")}, nullptr);
}

Issued issue(const Issued& ca, const CertificateSpec& spec) {
  return sign(spec, KeyPtr{EVP_EC_gen("P-256")}, &ca);
}

std::string encrypt_key(const std::string& key) { return key_pem(read_key(key).get(), "pass"); }

Issued make_weak_rsa() {
  CertificateSpec spec;
  spec.common_name = "weak";
  return sign(spec, KeyPtr{EVP_RSA_gen(512)}, nullptr);
}

}  // namespace slurmlet::tls
