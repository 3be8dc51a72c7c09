#pragma once

// Owning pointers for the OpenSSL objects this room uses. Internal to the room.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

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

using BioPtr = std::unique_ptr<BIO, Releaser<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Releaser<X509_free>>;
using CertificatesPtr = std::unique_ptr<STACK_OF(X509), Releaser<release_certificates>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Releaser<EVP_PKEY_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Releaser<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<SSL_CTX, Releaser<SSL_CTX_free>>;

}  // namespace slurmlet::tls
