#include "tls/credential.h"

#include <openssl/err.h>

#include <utility>

#include "base/try.h"
#include "tls/pem.h"

namespace slurmlet::tls {

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

}  // namespace slurmlet::tls
