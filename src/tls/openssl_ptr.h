#pragma once

// Owning pointers for the OpenSSL objects this component uses. Internal to the component.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace slurmlet::tls {

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};

inline void release_certificates(STACK_OF(X509) * certificates) {
  sk_X509_pop_free(certificates, X509_free);
}

inline void release_extensions(STACK_OF(X509_EXTENSION) * extensions) {
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
}

using BioPtr = std::unique_ptr<BIO, Releaser<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Releaser<X509_free>>;
using CertificatesPtr = std::unique_ptr<STACK_OF(X509), Releaser<release_certificates>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Releaser<EVP_PKEY_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Releaser<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Releaser<SSL_CTX_free>>;
using SessionPtr = std::unique_ptr<SSL, Releaser<SSL_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Releaser<X509_REQ_free>>;
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), Releaser<release_extensions>>;
using GeneralNamesPtr = std::unique_ptr<GENERAL_NAMES, Releaser<GENERAL_NAMES_free>>;

}  // namespace slurmlet::tls
