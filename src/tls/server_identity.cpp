#include <utility>

#include "base/result.h"
#include "tls/pem.h"
#include "tls/server_session.h"

namespace slurmlet::tls {
namespace {

constexpr long kMaxClientChainBytes = long{32} << 10;
constexpr int kMaxClientChainDepth = 8;
// Their names go to every client in clear; with more of them clients are left to guess.
constexpr std::size_t kMaxNamedClientCas = 16;

// Verifies as usual and goes on whatever the outcome, which stays in the session's verify result.
int verify_and_go_on(X509_STORE_CTX* chain, void* /*unused*/) {
  if (X509_verify_cert(chain) != 1 && X509_STORE_CTX_get_error(chain) == X509_V_OK) {
    X509_STORE_CTX_set_error(chain, X509_V_ERR_UNSPECIFIED);
  }
  return 1;
}

// RFC 7301 section 3.2: who offers protocols, but none of ours, is rejected.
int select_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_length,
                    const unsigned char* offered, unsigned int offered_length, void* /*unused*/) {
  static constexpr unsigned char kHttp[] = "\x08http/1.1";
  unsigned char* match = nullptr;
  if (SSL_select_next_proto(&match, chosen_length, kHttp, sizeof kHttp - 1, offered,
                            offered_length) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = match;
  return SSL_TLSEXT_ERR_OK;
}

bool set_protocol_rules(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_recv_max_early_data(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_max_cert_list(context, kMaxClientChainBytes);
  SSL_CTX_set_alpn_select_cb(context, select_protocol, nullptr);
  // Not OpenSSL's whole list, which has groups that cost the server a hundred times as much
  // (ffdhe8192). A system in FIPS mode has no X25519.
  if (SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384") != 1 &&
      SSL_CTX_set1_groups_list(context, "P-256:P-384") != 1) {
    return false;
  }
  // The list is for TLS 1.2; every suite of TLS 1.3 is of that kind.
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

Status ask_for_client_certificates(SSL_CTX* context, const ServerPem& pem) {
  const auto trust = TRY(parse_trust(*pem.client_ca, pem.client_ca_name));
  const auto authorities = TRY(parse_certificates(*pem.client_ca, pem.client_ca_name));
  SSL_CTX_set1_verify_cert_store(context, trust.get());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_verify_depth(context, kMaxClientChainDepth);
  SSL_CTX_set_cert_verify_callback(context, verify_and_go_on, nullptr);
  if (authorities.size() <= kMaxNamedClientCas) {
    for (const auto& authority : authorities) {
      SSL_CTX_add_client_CA(context, authority.get());
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const ServerIdentity>> ServerIdentity::make(const ServerPem& pem) {
  const auto own =
      TRY(parse_credential(pem.certificate, pem.certificate_name, pem.key, pem.key_name));
  ContextPtr context{SSL_CTX_new(TLS_server_method())};
  if (!context || !set_protocol_rules(context.get())) {
    return Error{Code::kInternal,
                 "OpenSSL rejects the rules for TLS 1.2 and 1.3: " + take_openssl_error()};
  }
  if (SSL_CTX_use_cert_and_key(context.get(), own.leaf.get(), own.key.get(), own.chain.get(), 1) !=
      1) {
    return Error{Code::kInvalid, pem.certificate_name +
                                     ": OpenSSL rejects it: " + take_openssl_error() +
                                     "; have it reissued according to the system's crypto policy"};
  }
  if (pem.client_ca) {
    TRY(ask_for_client_certificates(context.get(), pem));
  }
  return std::make_shared<const ServerIdentity>(std::move(context), summarize(*own.leaf));
}

}  // namespace slurmlet::tls
