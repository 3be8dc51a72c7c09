#include "tls/client_identity.h"

#include <openssl/err.h>

#include <utility>

#include "tls/certificate_summary.h"
#include "tls/openssl_ptr.h"
#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

struct ClientCertificate {
  CertificatePtr leaf;
  CertificatesPtr chain;
  KeyPtr key;
};

class OpensslIdentity final : public ClientIdentity {
 public:
  OpensslIdentity(StorePtr trust, std::optional<ClientCertificate> own)
      : trust_(std::move(trust)), own_(std::move(own)) {
    if (own_) {
      summary_ = summarize(*own_->leaf);
    }
  }

  std::optional<CertificateSummary> certificate() const override { return summary_; }
  bool apply_to(void* ssl_ctx) const override;

 private:
  StorePtr trust_;
  std::optional<ClientCertificate> own_;
  std::optional<CertificateSummary> summary_;
};

bool OpensslIdentity::apply_to(void* ssl_ctx) const {
  auto* context = static_cast<SSL_CTX*>(ssl_ctx);
  // The verify store goes before the context's own store, to which an HTTP library may add the
  // system's CAs behind our back.
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set1_verify_cert_store(context, trust_.get()) != 1) {
    return false;
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  // Connections live for hours. Resuming a session would save little, costs memory, and would
  // hide a renewed client certificate from the server.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections keep no 16 kB records; the chain we send is the one we were given.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  return !own_ || SSL_CTX_use_cert_and_key(context, own_->leaf.get(), own_->key.get(),
                                           own_->chain.get(), 1) == 1;
}

Result<StorePtr> make_trust(const PemSources& pem) {
  StorePtr store{X509_STORE_new()};
  // Any CA of the bundle is an anchor, self-signed or not, as in Go's crypto/x509, which is what
  // other clients of the same kubeconfig use.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  if (pem.ca.empty()) {
    if (X509_STORE_set_default_paths(store.get()) != 1) {
      return Error{Code::kInvalid, "the system's CA certificates cannot be loaded: " +
                                       take_openssl_error() + "; name a CA bundle instead"};
    }
    return store;
  }
  const auto certificates = parse_certificates(pem.ca, pem.ca_name);
  if (!certificates) {
    return certificates.error();
  }
  for (const auto& certificate : *certificates) {
    if (X509_STORE_add_cert(store.get(), certificate.get()) != 1) {
      return Error{Code::kInternal, pem.ca_name + ": " + take_openssl_error()};
    }
  }
  return store;
}

Result<std::optional<ClientCertificate>> make_own(const PemSources& pem) {
  if (pem.certificate.empty()) {
    if (!pem.key.empty()) {
      return Error{Code::kInvalid, pem.key_name +
                                       ": a private key without its certificate; give "
                                       "both or neither"};
    }
    return std::optional<ClientCertificate>{};
  }
  if (pem.key.empty()) {
    return Error{Code::kInvalid, pem.certificate_name +
                                     ": a certificate without its private key; "
                                     "give both or neither"};
  }
  auto certificates = parse_certificates(pem.certificate, pem.certificate_name);
  if (!certificates) {
    return certificates.error();
  }
  auto key = parse_private_key(pem.key, pem.key_name);
  if (!key) {
    return key.error();
  }
  ClientCertificate own{std::move(certificates->front()), CertificatesPtr{sk_X509_new_null()},
                        std::move(*key)};
  for (auto it = certificates->begin() + 1; it != certificates->end(); ++it) {
    sk_X509_push(own.chain.get(), it->release());
  }
  if (X509_check_private_key(own.leaf.get(), own.key.get()) != 1) {
    ERR_clear_error();
    return Error{Code::kInvalid, pem.key_name +
                                     ": the private key does not belong to the first "
                                     "certificate of " +
                                     pem.certificate_name + "; give the pair that was issued"};
  }
  return std::optional<ClientCertificate>{std::move(own)};
}

}  // namespace

Result<std::shared_ptr<const ClientIdentity>> ClientIdentity::make(const PemSources& pem) {
  auto trust = make_trust(pem);
  if (!trust) {
    return trust.error();
  }
  auto own = make_own(pem);
  if (!own) {
    return own.error();
  }
  auto identity = std::make_shared<const OpensslIdentity>(std::move(*trust), std::move(*own));
  // A rehearsal, so that what OpenSSL's policy refuses (a short RSA key, say) shows now and by
  // name, not at the first connection.
  const ContextPtr rehearsal{SSL_CTX_new(TLS_client_method())};
  if (!identity->apply_to(rehearsal.get())) {
    const std::string name = pem.certificate.empty() ? pem.ca_name : pem.certificate_name;
    return Error{Code::kInvalid, name + ": OpenSSL refuses it: " + take_openssl_error() +
                                     "; have it issued anew to the system's crypto policy"};
  }
  return std::shared_ptr<const ClientIdentity>{std::move(identity)};
}

}  // namespace slurmlet::tls
