#include "tls/client_identity.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

// OpenSSL itself looks into /etc/ssl/certs, as Debian and SUSE have it. RHEL has one file instead,
// of which an OpenSSL that was built elsewhere does not know.
constexpr const char* kBundleOfRhel = "/etc/pki/tls/certs/ca-bundle.crt";

bool load_system_cas(X509_STORE* store) {
  const bool chosen = ::secure_getenv(X509_get_default_cert_file_env()) != nullptr ||
                      ::secure_getenv(X509_get_default_cert_dir_env()) != nullptr;
  return X509_STORE_set_default_paths(store) == 1 &&
         (chosen || ::access(kBundleOfRhel, R_OK) != 0 ||
          X509_STORE_load_file(store, kBundleOfRhel) == 1);
}

bool apply_common(SSL_CTX* context) {
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) {
    return false;
  }
  // Connections live for hours. Resuming a session would save little, costs memory, and would
  // hide a renewed client certificate from the server.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections keep no 16 kB records; the chain we send is the one we were given.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  return true;
}

Result<StorePtr> make_trust(const PemSources& pem) {
  if (pem.ca) {
    return parse_trust(*pem.ca, pem.ca_name);
  }
  StorePtr store = make_store();
  if (!load_system_cas(store.get())) {
    return Error{Code::kInvalid, "the system's CA certificates cannot be loaded: " +
                                     take_openssl_error() + "; name a CA bundle instead"};
  }
  return store;
}

// Null if there is none.
Result<std::shared_ptr<const Credential>> make_own(const PemSources& pem) {
  if (!pem.certificate) {
    if (pem.key) {
      return Error{Code::kInvalid, pem.key_name +
                                       ": a private key without its certificate; give "
                                       "both or neither"};
    }
    return std::shared_ptr<const Credential>{};
  }
  if (!pem.key) {
    return Error{Code::kInvalid, pem.certificate_name +
                                     ": a certificate without its private key; "
                                     "give both or neither"};
  }
  auto own = TRY(parse_credential(*pem.certificate, pem.certificate_name, *pem.key, pem.key_name));
  return std::make_shared<const Credential>(std::move(own));
}

}  // namespace

ClientIdentity::ClientIdentity(std::shared_ptr<x509_store_st> trust,
                               std::shared_ptr<const Credential> own)
    : trust_(std::move(trust)), own_(std::move(own)) {
  if (own_) {
    summary_ = summarize(*own_->leaf);
  }
}

bool ClientIdentity::apply_to(void* ssl_ctx) const {
  auto* context = static_cast<SSL_CTX*>(ssl_ctx);
  // The verify store goes before the context's own store, to which an HTTP library may add the
  // system's CAs behind our back.
  if (!apply_common(context) ||
      (trust_ && SSL_CTX_set1_verify_cert_store(context, trust_.get()) != 1)) {
    return false;
  }
  SSL_CTX_set_verify(context, trust_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  return !own_ || SSL_CTX_use_cert_and_key(context, own_->leaf.get(), own_->key.get(),
                                           own_->chain.get(), 1) == 1;
}

Result<std::shared_ptr<const ClientIdentity>> ClientIdentity::make(const PemSources& pem) {
  auto trust = TRY(make_trust(pem));
  auto own = TRY(make_own(pem));
  auto identity = std::make_shared<const ClientIdentity>(std::move(trust), std::move(own));
  // A rehearsal, so that what OpenSSL's policy rejects (a short RSA key, say) shows now and by
  // name, not at the first connection.
  const ContextPtr rehearsal{SSL_CTX_new(TLS_client_method())};
  if (!identity->apply_to(rehearsal.get())) {
    const std::string name = pem.certificate ? pem.certificate_name : pem.ca_name;
    return Error{Code::kInvalid, name + ": OpenSSL rejects it: " + take_openssl_error() +
                                     "; have it reissued according to the system's crypto policy"};
  }
  return identity;
}

Result<std::shared_ptr<const ClientIdentity>> ClientIdentity::make_untrusting() {
  return std::make_shared<const ClientIdentity>(nullptr, nullptr);
}

}  // namespace slurmlet::tls
